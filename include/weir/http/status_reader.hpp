// The status of an answer of which nothing else matters: a health check's, a webhook's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

// Is fed an answer as it comes and passes over its interim heads (RFC 9110 §15.2).
class StatusReader {
 public:
  // The heads of one answer, interim ones among them, and what comes with the last, are no more together: who
  // sends those without end is not listened to for ever.
  static constexpr std::size_t kMost = 16 << 10;  // octets

  enum class State : std::uint8_t { Wanting, Known, Faulty };

  // REQUIRES that nothing is known yet, and no fault.
  State feed(std::string_view piece);

  // REQUIRES Known. From 200 on.
  [[nodiscard]] unsigned status() const noexcept { return status_; }

 private:
  std::string unread_;
  std::size_t searched_ = 0;
  std::size_t fed_ = 0;
  unsigned status_ = 0;
};

}  // namespace weir::http
