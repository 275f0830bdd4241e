// Finds where gRPC messages begin in one direction of a call. A message is a flag, the length of its content
// as a 32-bit number, and the content. The scanner ignores flags and contents. Pure.
//
//   | flag | length (4 octets, big-endian) | content … | flag | length | content … |
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::http {

class GrpcMessageScanner {
 public:
  // Returns true if the next octet begins a message.
  [[nodiscard]] bool at_boundary() const noexcept { return prefix_left_ == 0 && left_ == 0; }
  // Takes octets from the front of `octets`, at most to the end of one message. `octets` must follow the
  // octets of earlier calls. Returns the number of octets taken, which is 0 only if `octets` is empty.
  [[nodiscard]] std::size_t take(std::string_view octets) noexcept;

 private:
  static constexpr std::size_t kPrefix = 5;

  std::size_t prefix_left_ = 0;  // octets of the prefix that have not arrived yet
  // octets of the content that have not arrived yet; not known until the prefix is complete
  std::uint32_t left_ = 0;
};

}  // namespace weir::http
