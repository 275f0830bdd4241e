// Finds the frames in one direction of a WebSocket (RFC 6455 §5.2): where each frame begins and ends, and its
// kind. The scanner ignores payloads, so their content and compression do not matter. Pure. A tunnel with
// limited messages owns one scanner for each direction.
//
//    0               1               2               3
//   |F|R|R|R| opcode |M| length 7   | length 16 or 64 if the 7 bits are 126 or 127 | mask if M is set |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

class FrameScanner {
 public:
  // The sender of the frames. Clients mask their frames, servers do not (RFC 6455 §5.1).
  enum class Sender : std::uint8_t { Client, Server };
  explicit FrameScanner(Sender sender) noexcept : masked_(sender == Sender::Client) {}

  static constexpr std::size_t kMostHeader = 14;

  enum class Kind : std::uint8_t {
    Payload,       // a part of the current frame's payload
    Message,       // the header of a message's first frame
    Continuation,  // the header of a later frame of the same message
    Ping,
    Pong,
    Close,
    NeedMore,  // the header is incomplete; the size is 0
    // A frame that this sender may not send now, such as any frame after Close (RFC 6455 §5.5.1). The size is
    // 0. All later results are Faulty too, with size 0.
    Faulty,
  };
  struct Piece {
    Kind kind = Kind::NeedMore;
    std::size_t size = 0;  // number of octets of the piece, from the front of `bytes`
  };
  // Returns the first piece of `bytes`, which must continue the octets of the earlier calls. If the header of
  // a frame is incomplete, returns NeedMore; the next call must then start with the same header again.
  [[nodiscard]] Piece next(std::string_view bytes) noexcept;

  // Returns true between frames, so that weir may insert a frame of its own.
  [[nodiscard]] bool between_frames() const noexcept { return left_ == 0 && !faulty_; }

  // Returns true if a Close frame has begun. After that frame, the sender must not send another frame.
  [[nodiscard]] bool closed() const noexcept { return closed_; }

 private:
  [[nodiscard]] Piece fault() noexcept;
  [[nodiscard]] bool fits(unsigned first, std::uint64_t length) const noexcept;

  bool masked_;
  // true: a message of several frames has begun, and its last frame has not arrived yet
  bool fragmented_ = false;
  bool closed_ = false;
  bool faulty_ = false;
  std::uint64_t left_ = 0;  // remaining octets of the current payload
};

// Status codes that weir sends in Close frames (RFC 6455 §7.4.1).
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kPolicyViolation = 1008;

// Append a Close frame. `reason` may have at most 123 octets of UTF-8. The overload that takes a mask also
// masks the frame, as clients must (RFC 6455 §5.3).
void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason);
void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason,
                        std::array<unsigned char, 4> mask);

}  // namespace weir::http
