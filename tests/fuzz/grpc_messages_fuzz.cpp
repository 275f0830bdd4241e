// Fuzzes the messages and the trailers of gRPC calls. The scanner must find the same messages whether the
// bytes arrive whole or in pieces, and must skip no byte.
#include "fuzz/input.hpp"

#include "weir/http/grpc_messages.hpp"
#include "weir/http/grpc_status.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

// Returns the positions at which messages begin. Feeds the input in pieces of at most `cut` bytes.
std::string beginnings(std::string_view input, std::size_t cut) {
  http::GrpcMessageScanner scanner;
  std::string text;
  for (std::size_t at = 0; at < input.size();) {
    const auto piece = input.substr(at, cut);
    if (scanner.at_boundary()) text += std::to_string(at) + " ";
    const auto taken = scanner.take(piece);
    require(taken > 0 && taken <= piece.size(), "it goes on, and takes no more than there is");
    require(taken == piece.size() || scanner.at_boundary(), "it stops only between messages");
    at += taken;
  }
  return text + (scanner.at_boundary() ? "ended" : "within");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto whole = beginnings(input, std::max<std::size_t>(input.size(), 1));
  require(beginnings(input, 1) == whole, "octet by octet the same");
  require(beginnings(input, std::size_t{bytes[0]} + 1) == whole, "in pieces the same");
  require(weir::http::grpc_status_in_trailers(input) <= weir::http::kMostGrpcStatus, "a known status");
  return 0;
}
