// The time of this process: microseconds since the Unix epoch, by a clock that never steps.
//
// The clock reads the wall clock once, at start. Afterwards only the monotonic clock moves it, so a step of
// the wall clock refills no bucket. Immutable and thread-safe.
//
// Limits use this clock. Times that others compare with their own clocks use the machine's present clock: the
// dates of tokens, HTTP dates, the times in logs.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <chrono>

namespace weir::net {

class Clock {
 public:
  // Starts at `not_before` if the wall clock shows an earlier instant. So times at which state was saved do
  // not recur.
  explicit Clock(base::TimePoint not_before = {}) noexcept
      : wall_(std::max(machine_now(), not_before)), steady_(std::chrono::steady_clock::now()) {}

  // Returns the machine's clock, which may be set while weir runs.
  [[nodiscard]] static base::TimePoint machine_now() noexcept {
    return std::chrono::floor<base::Duration>(std::chrono::system_clock::now());
  }
  // Returns how far the machine's clock is ahead of this clock; negative: behind.
  [[nodiscard]] base::Duration machine_ahead() const noexcept { return machine_now() - now(); }

  // Returns what now() adds to the machine's monotonic clock. Another process that uses the same offset has
  // the same time.
  [[nodiscard]] base::Duration offset() const noexcept {
    return wall_.time_since_epoch() - std::chrono::duration_cast<base::Duration>(steady_.time_since_epoch());
  }
  [[nodiscard]] static Clock at_offset(base::Duration offset) noexcept {
    Clock clock;
    clock.wall_ = base::TimePoint(
        offset + std::chrono::duration_cast<base::Duration>(clock.steady_.time_since_epoch()));
    return clock;
  }

  [[nodiscard]] base::TimePoint now() const noexcept {
    return wall_ + std::chrono::duration_cast<base::Duration>(std::chrono::steady_clock::now() - steady_);
  }
  // Returns the monotonic instant at which now() reaches `at`, for timers.
  [[nodiscard]] std::chrono::steady_clock::time_point steady(base::TimePoint at) const noexcept {
    return steady_ + (at - wall_);
  }

 private:
  base::TimePoint wall_;
  std::chrono::steady_clock::time_point steady_;
};

}  // namespace weir::net
