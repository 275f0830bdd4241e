#include "weir/ask/grpc_framing.hpp"

namespace weir::ask {

namespace {

constexpr std::size_t kFraming = 5;

}  // namespace

GrpcMessage first_grpc_message(std::string_view octets, std::size_t most) noexcept {
  using State = GrpcMessage::State;
  if (octets.empty()) return {};
  if (octets.front() != 0) return {.state = State::Compressed};
  if (octets.size() < kFraming) return {};
  std::size_t length = 0;
  for (const char octet : octets.substr(1, kFraming - 1))
    length = length << 8U | static_cast<unsigned char>(octet);
  if (length > most) return {.state = State::TooLong};
  if (octets.size() - kFraming < length) return {};
  return {.state = State::Whole, .text = octets.substr(kFraming, length), .consumed = kFraming + length};
}

void append_grpc_framing(std::string& out, std::size_t size) {
  out += '\0';
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(size >> static_cast<unsigned>(shift) & 0xffU);
}

}  // namespace weir::ask
