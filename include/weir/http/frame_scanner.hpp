// The frames of one side of a WebSocket (RFC 6455 §5.2), as they pass: where each begins and ends, and what
// it is. Payloads are not looked at, so what they say, and how it is compressed, is all one.
//
//    0               1               2               3
//   |F|R|R|R| opcode |M| length 7    | length 16 or 64, where 7 bits say 126 or 127 | mask, where M says so |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

class FrameScanner {
 public:
  // What a client sends is masked, what a server sends is not (§5.1).
  enum class Sender : std::uint8_t { Client, Server };
  explicit FrameScanner(Sender sender) noexcept : masked_(sender == Sender::Client) {}

  static constexpr std::size_t kMostHeader = 14;

  enum class Kind : std::uint8_t {
    Payload,       // of the frame under way
    Message,       // the header of a message's first frame
    Continuation,  // the header of a later frame of that message
    Ping,
    Pong,
    Close,
    NeedMore,  // a header has not come whole: no size
    Faulty,  // not a frame that this side may send now, as none may behind Close (§5.5.1): no size, and so it
             // stays
  };
  struct Piece {
    Kind kind = Kind::NeedMore;
    std::size_t size = 0;  // octets at the front
  };
  // The first piece of `bytes`, which follow the pieces before. A header is told once it is whole; where it
  // is not, it has to be shown again from its beginning.
  [[nodiscard]] Piece next(std::string_view bytes) noexcept;

  // No frame is under way: one of our own may come between.
  [[nodiscard]] bool between_frames() const noexcept { return left_ == 0 && !faulty_; }

  // The header of a Close frame has passed: this side has said all that it may.
  [[nodiscard]] bool closed() const noexcept { return closed_; }

 private:
  [[nodiscard]] Piece fault() noexcept;
  [[nodiscard]] bool fits(unsigned first, std::uint64_t length) const noexcept;

  bool masked_;
  bool fragmented_ = false;  // a message has begun and not ended
  bool closed_ = false;
  bool faulty_ = false;
  std::uint64_t left_ = 0;  // of the payload under way
};

// Status codes of a Close frame (§7.4.1).
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kPolicyViolation = 1008;

// Appends a Close frame; `reason`: at most 123 octets of UTF-8. With a mask as a client sends it (§5.3).
void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason);
void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason,
                        std::array<unsigned char, 4> mask);

}  // namespace weir::http
