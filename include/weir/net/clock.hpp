// The time of this process: microseconds since the Unix epoch, by a clock that never steps.
//
// This clock reads the wall clock once, at start. Afterwards only the monotonic clock moves it, so a step of
// the wall clock does not refill token buckets. The program owns one Clock, which all threads read. Immutable
// and thread-safe.
//
// Limits use this clock. Expiry times of tokens, HTTP dates and the times in logs use the machine's present
// clock, because people and other programs compare these times with their own clocks.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <chrono>

namespace weir::net {

class Clock {
 public:
  // Starts at the wall clock's time, or at `not_before` if that is later. `not_before`: the time at which the
  // state of the limits was saved. This clock must not go back behind that time.
  explicit Clock(base::TimePoint not_before = {}) noexcept
      : wall_(std::max(machine_now(), not_before)), steady_(std::chrono::steady_clock::now()) {}

  // Returns the time of the machine's wall clock, which the administrator may set while weir runs.
  [[nodiscard]] static base::TimePoint machine_now() noexcept {
    return std::chrono::floor<base::Duration>(std::chrono::system_clock::now());
  }
  // Returns how far the machine's clock is ahead of this clock; negative: behind.
  [[nodiscard]] base::Duration machine_ahead() const noexcept { return machine_now() - now(); }

  // Returns the difference between now() and the machine's monotonic clock. Two processes on one machine with
  // the same offset have the same time.
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
