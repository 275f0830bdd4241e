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

// Appends the framing of a message of this many octets. REQUIRES: size < 2^32.
void append_grpc_framing(std::string& out, std::size_t size);

}  // namespace weir::ask
