// Fuzzes a whole session (a client's connection and its requests) with any bytes from the client and from
// servers. The input before the first byte 255 comes from the client. Each further part, up to the next byte
// 255, is one response of a server.
#include "fuzz/input.hpp"
#include "unit/proxy/client/session_laws.hpp"

#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  constexpr std::size_t kPieces[] = {1 << 20, 1, 7, 64};
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  proxy::SessionScript script;
  script.client_piece = kPieces[bytes[0] & 3];
  script.server_piece = kPieces[bytes[0] >> 2 & 3];
  const auto take = [&rest] {
    const auto part = rest.substr(0, rest.find('\xff'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return std::string(part);
  };
  script.client = take();
  while (!rest.empty()) script.answers.push_back(take());
  static const std::string path = "/tmp/weir-session-fuzz-" + std::to_string(::getpid());
  const auto* broken = proxy::broken_law(script, path);
  fuzz::require(broken == nullptr, broken);
  return 0;
}
