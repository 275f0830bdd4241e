// Fuzzes WebSocket frames. The scanner must find the same frames whether the bytes arrive whole or in pieces,
// and must skip no byte.
#include "fuzz/input.hpp"

#include "weir/http/frame_scanner.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

using http::FrameScanner;
using Kind = FrameScanner::Kind;

// Returns, as text, the kind of each frame and the position after the frame's header. Feeds the input in
// pieces of at most `cut` bytes.
std::string frames_found(std::string_view input, FrameScanner::Sender sender, std::size_t cut) {
  FrameScanner scanner(sender);
  std::string text;
  std::size_t taken = 0;
  std::size_t shown = 0;
  while (shown < input.size()) {
    shown = std::min(input.size(), shown + cut);
    for (;;) {
      const auto piece = scanner.next(input.substr(taken, shown - taken));
      require(piece.size <= shown - taken, "it takes no more than there is");
      if (piece.kind == Kind::Faulty) return text + "fault at " + std::to_string(taken);
      if (piece.kind == Kind::NeedMore) break;
      require(piece.size > 0, "it goes on");
      require(piece.kind == Kind::Payload || piece.size <= FrameScanner::kMostHeader, "headers are short");
      taken += piece.size;
      if (piece.kind != Kind::Payload) text += std::to_string(static_cast<int>(piece.kind)) + " ";
    }
    require(shown - taken < FrameScanner::kMostHeader, "only a header waits for more");
  }
  return text + (scanner.between_frames() ? "at " : "within ") + std::to_string(taken);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto sender = (bytes[0] & 1) != 0 ? FrameScanner::Sender::Client : FrameScanner::Sender::Server;
  const auto whole = frames_found(input, sender, std::max<std::size_t>(input.size(), 1));
  require(frames_found(input, sender, 1) == whole, "octet by octet the same");
  require(frames_found(input, sender, std::size_t{bytes[0]} / 2 + 1) == whole, "in pieces the same");
  return 0;
}
