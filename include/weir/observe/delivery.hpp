// Decides when a message is sent, and when it is sent again after a failure. The pauses between attempts grow
// and are random (backoff and jitter), and a token bucket limits the rate of attempts. Plain values; time and
// randomness are arguments.
//
// A Delivery has at most one message. A newer message replaces the undelivered one. So if an alert began and
// ended while its receiver was unreachable, the receiver gets only the message about the end. A message is
// sent again until it is delivered, replaced or given up. A message is overdue after `most` failed attempts.
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
    limit::GcraCore attempts;  // the maximum rate of attempts
    unsigned most = 5;         // failed attempts after which a message is overdue
  };
  static constexpr base::Duration kFirstPause{
      1'000'000};  // the maximum pause after the first attempt; each further attempt doubles the maximum
  static constexpr base::Duration kLongestPause{300'000'000};

  explicit Delivery(const Settings& settings) noexcept : settings_(settings) {}

  // Sets the message to send. Returns true if it replaces an undelivered message.
  bool put(std::string message, base::TimePoint now);

  // If an attempt is due, begins the attempt and returns the message. Returns null if no attempt is due or an
  // attempt is running. The pointer is valid until the next put() or the end of the attempt.
  [[nodiscard]] const std::string* begin(base::TimePoint now);

  enum class End : std::uint8_t {
    Sent,
    Again,  // the message, or a newer one, will be sent
    // The message will not be sent again. Either further attempts would fail, too, or the message is overdue
    // and give_up_what_is_overdue() was called.
    GivenUp
  };
  // sent() or failed() must be called when the running attempt ends. `hopeless`: true if further attempts
  // would fail, too. `random`: any 64 random bits.
  End sent() noexcept;
  End failed(bool hopeless, base::TimePoint now, std::uint64_t random) noexcept;

  // After this call, an overdue message is given up when its next attempt fails.
  void give_up_what_is_overdue() noexcept { gives_up_ = true; }
  // Returns true if put() has set a newer message since the running attempt began.
  [[nodiscard]] bool is_replaced() const noexcept { return replaced_; }
  // Returns true if `most` attempts to send the present message have failed.
  [[nodiscard]] bool is_overdue() const noexcept { return overdue_; }

  [[nodiscard]] bool empty() const noexcept { return !message_.has_value(); }

 private:
  Settings settings_;
  std::optional<std::string> message_;
  bool under_way_ = false;
  bool replaced_ = false;  // true: put() set a newer message while an attempt was running
  bool overdue_ = false;
  bool gives_up_ = false;
  unsigned attempts_ = 0;
  base::TimePoint due_{};
  limit::Ticks tat_ = 0;  // the state (theoretical arrival time) of the rate limit settings_.attempts
};

}  // namespace weir::observe
