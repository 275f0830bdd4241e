// Reads the status of a response and ignores everything else. Used for responses to health checks and
// webhooks. Pure. Belongs to one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

// Takes a response piece by piece and skips its interim heads (RFC 9110 §15.2).
class StatusReader {
 public:
  // The maximum size of all heads of a response, including interim heads and octets that arrive with the last
  // head. This bound stops servers that send interim heads without end.
  static constexpr std::size_t kMost = 16 << 10;  // octets

  enum class State : std::uint8_t { Wanting, Known, Faulty };

  // Reads the next piece of the response. REQUIRES: no earlier call returned Known or Faulty.
  State feed(std::string_view piece);

  // Returns the status, 200 or above. REQUIRES: feed() returned Known.
  [[nodiscard]] unsigned status() const noexcept { return status_; }

 private:
  std::string unread_;        // octets that are not part of a complete head yet
  std::size_t searched_ = 0;  // how many octets of unread_ were searched for the end of a head
  std::size_t fed_ = 0;       // octets of all pieces so far
  unsigned status_ = 0;
};

}  // namespace weir::http
