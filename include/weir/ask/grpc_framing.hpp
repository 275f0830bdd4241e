// The framing of gRPC messages: a flag octet, four octets of length, and the message ("gRPC over HTTP2" on
// grpc.io). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::ask {

struct GrpcMessage {
  enum class State : std::uint8_t {
    Whole,       // `text` is the message
    Partial,     // more octets must arrive first
    Compressed,  // the message is compressed, and weir reads no compressed messages
    TooLong,     // the message is longer than permitted
  };
  State state = State::Partial;
  std::string_view text{};   // a view into the octets
  std::size_t consumed = 0;  // for Whole: the octets of the message and its framing
};

// Returns the first message in `octets`. `most`: the largest message, in octets.
[[nodiscard]] GrpcMessage first_grpc_message(std::string_view octets, std::size_t most) noexcept;

inline constexpr std::size_t kGrpcFraming = 5;  // octets before each message

// Writes the framing of a message. `framed`: kGrpcFraming octets of any value, and the message. REQUIRES: the
// message has less than 2^32 octets.
void write_grpc_framing(std::string& framed) noexcept;

}  // namespace weir::ask
