#include "weir/ask/grpc_framing.hpp"

namespace weir::ask {

GrpcMessage first_grpc_message(std::string_view octets, std::size_t most) noexcept {
  using State = GrpcMessage::State;
  if (octets.empty()) return {};
  if (octets.front() != 0) return {.state = State::Compressed};
  if (octets.size() < kGrpcFraming) return {};
  std::size_t length = 0;
  for (const char octet : octets.substr(1, kGrpcFraming - 1))
    length = length << 8U | static_cast<unsigned char>(octet);
  if (length > most) return {.state = State::TooLong};
  if (octets.size() - kGrpcFraming < length) return {};
  return {
      .state = State::Whole, .text = octets.substr(kGrpcFraming, length), .consumed = kGrpcFraming + length};
}

void write_grpc_framing(std::string& framed) noexcept {
  auto size = framed.size() - kGrpcFraming;
  framed[0] = '\0';
  for (std::size_t i = kGrpcFraming - 1; i > 0; --i) {
    framed[i] = static_cast<char>(size & 0xffU);
    size >>= 8U;
  }
}

}  // namespace weir::ask
