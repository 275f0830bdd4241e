// When a message is sent and sent again: backoff with jitter, and a rate limit, which is a token bucket.
// Plain values; time and randomness are arguments.
//
// There is at most one message. A newer message replaces one that was not delivered. So if an alert began and
// ended while its receiver was away, the receiver hears of the end. A message is tried as long as it is the
// newest. After `most` attempts it is overdue.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/gcra_core.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::observe {

class Delivery {
 public:
  struct Settings {
    limit::GcraCore attempts;  // rate of attempts
    unsigned most = 5;         // attempts at one message until it is overdue
  };
  static constexpr base::Duration kFirstPause{
      1'000'000};  // upper bound of the pause after the first attempt; doubles each time
  static constexpr base::Duration kLongestPause{300'000'000};

  explicit Delivery(const Settings& settings) noexcept : settings_(settings) {}

  // Sets the message to send. Returns true if it replaces one that was not delivered.
  bool put(std::string message, base::TimePoint now);

  // Returns the message if an attempt is due, and begins that attempt. Returns null if none is due or one is
  // running. The pointer is valid until the next put() or the attempt's end.
  [[nodiscard]] const std::string* begin(base::TimePoint now);

  enum class End : std::uint8_t {
    Sent,
    Again,   // it will be tried again
    GivenUp  // it will not be tried again: another attempt is useless, or overdue messages are given up
  };
  // End the running attempt. `hopeless`: another attempt would fail too. `random`: any 64 bits.
  End sent() noexcept;
  End failed(bool hopeless, base::TimePoint now, std::uint64_t random) noexcept;

  // Makes overdue messages be given up from now on.
  void give_up_what_is_overdue() noexcept { gives_up_ = true; }
  // Returns true if a newer message has come since the running attempt began.
  [[nodiscard]] bool is_replaced() const noexcept { return replaced_; }
  // Returns true if `most` attempts at the message have failed.
  [[nodiscard]] bool is_overdue() const noexcept { return overdue_; }

  [[nodiscard]] bool empty() const noexcept { return !message_.has_value(); }

 private:
  Settings settings_;
  std::optional<std::string> message_;
  bool under_way_ = false;
  bool replaced_ = false;  // a newer message came during the attempt
  bool overdue_ = false;
  bool gives_up_ = false;
  unsigned attempts_ = 0;
  base::TimePoint due_{};
  limit::Ticks tat_ = 0;  // state of settings_.attempts
};

}  // namespace weir::observe
