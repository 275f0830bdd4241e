// Fuzzes chunked bodies. A body must decode to the same content, whether it arrives whole or in pieces.
#include "fuzz/input.hpp"

#include "weir/http/chunked.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

using Status = http::ChunkDecoder::Status;

struct Decoded {
  std::string body;
  std::size_t used = 0;
  Status status = Status::NeedMore;
  bool operator==(const Decoded&) const = default;
};

// Decodes the input in pieces of at most `cut` bytes.
Decoded decoded(std::string_view input, std::size_t cut, http::ChunkDecoder::Sender sender) {
  http::ChunkDecoder decoder(sender);
  Decoded result;
  while (result.used < input.size() && (result.status == Status::NeedMore || result.status == Status::Data)) {
    const std::string piece(input.substr(result.used, cut));
    const auto next = decoder.next(piece);
    require(next.used <= piece.size(), "it eats no more than there is");
    require(next.data.size() <= next.used, "data are part of what was eaten");
    require(next.used != 0 || next.status == Status::Done || next.status == Status::Bad, "it goes on");
    require(next.status != Status::NeedMore || next.used == piece.size(), "it wants more when all is eaten");
    result.body += next.data;
    result.used += next.used;
    result.status = next.status;
  }
  if (result.status == Status::Data) result.status = Status::NeedMore;
  if (result.status == Status::Bad) result.used = 0;  // the decoder may stop at any byte of a bad body
  require(decoder.done() == (result.status == Status::Done), "done when it says so");
  return result;
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  using Sender = weir::http::ChunkDecoder::Sender;
  for (const auto sender : {Sender::Client, Sender::Server}) {
    const auto whole = decoded(input, std::max<std::size_t>(input.size(), 1), sender);
    require(decoded(input, 1, sender) == whole, "byte by byte the same");
    require(decoded(input, std::size_t{bytes[0]} + 1, sender) == whole, "in pieces the same");
  }
  return 0;
}
