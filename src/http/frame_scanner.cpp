#include "weir/http/frame_scanner.hpp"

#include <algorithm>

namespace weir::http {

namespace {

constexpr unsigned kFinal = 0x80;
constexpr unsigned kMasked = 0x80;
constexpr unsigned kControl = 0x08;  // the opcode bit of control frames

unsigned octet(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<unsigned char>(bytes[at]);
}

// Appends the first two octets of a Close frame. If the frame is not masked, also appends the code and the
// reason. Otherwise the caller appends the mask, then both in masked form.
void append_start(std::string& out, std::uint16_t code, std::string_view reason, unsigned mask_bit) {
  out += static_cast<char>(kFinal | 0x08U);
  out += static_cast<char>(mask_bit | (2U + static_cast<unsigned>(reason.size())));
  if (mask_bit != 0) return;
  out += static_cast<char>(code >> 8U);
  out += static_cast<char>(code & 0xffU);
  out += reason;
}

}  // namespace

FrameScanner::Piece FrameScanner::fault() noexcept {
  faulty_ = true;
  return {Kind::Faulty, 0};
}

// Returns true if a frame with this first octet and this length is allowed at this point. Treats the data
// opcodes that are reserved for extensions like messages, and the reserved control opcodes like pings (RFC
// 6455 §5.2).
bool FrameScanner::fits(unsigned first, std::uint64_t length) const noexcept {
  const unsigned opcode = first & 0x0fU;
  if ((opcode & kControl) != 0) return (first & kFinal) != 0 && length <= 125;
  return (opcode == 0) == fragmented_;
}

FrameScanner::Piece FrameScanner::next(std::string_view bytes) noexcept {
  if (faulty_) return {Kind::Faulty, 0};
  if (left_ > 0) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    left_ -= size;
    return {size > 0 ? Kind::Payload : Kind::NeedMore, size};
  }
  if (closed_ && !bytes.empty()) return fault();
  if (bytes.size() < 2) return {};
  const unsigned first = octet(bytes, 0);
  const unsigned second = octet(bytes, 1);
  const unsigned short_length = second & 0x7fU;
  const std::size_t more = short_length < 126 ? 0 : short_length == 126 ? 2 : 8;
  if (((second & kMasked) != 0) != masked_) return fault();
  const std::size_t header = 2 + more + (masked_ ? 4 : 0);
  if (bytes.size() < header) return {};
  std::uint64_t length = more == 0 ? short_length : 0;
  for (std::size_t at = 2; at < 2 + more; ++at) length = length << 8U | octet(bytes, at);
  // The length must be encoded in the shortest form, and its highest bit must be 0.
  if ((more == 2 && length < 126) || (more == 8 && (length < 65'536 || length >> 63U != 0))) return fault();
  if (!fits(first, length)) return fault();
  left_ = length;
  switch (first & 0x0fU) {
    case 0x8:
      closed_ = true;
      return {Kind::Close, header};
    case 0xA:
      return {Kind::Pong, header};
    default:
      break;
  }
  if ((first & kControl) != 0) return {Kind::Ping, header};
  const bool begins = !fragmented_;
  fragmented_ = (first & kFinal) == 0;
  return {begins ? Kind::Message : Kind::Continuation, header};
}

void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason) {
  append_start(out, code, reason, 0);
}

void append_close_frame(std::string& out, std::uint16_t code, std::string_view reason,
                        std::array<unsigned char, 4> mask) {
  append_start(out, code, reason, kMasked);
  for (const auto octet : mask) out += static_cast<char>(octet);
  const auto masked = [&](std::size_t at, unsigned value) { return static_cast<char>(value ^ mask[at % 4]); };
  out += masked(0, code >> 8U);
  out += masked(1, code & 0xffU);
  for (std::size_t i = 0; i < reason.size(); ++i) out += masked(2 + i, static_cast<unsigned char>(reason[i]));
}

}  // namespace weir::http
