// The time of this process: microseconds since the Unix epoch by a clock that never steps.
//
// Anchored to the wall once, at start; from then on the monotonic clock alone moves it, so a step of the wall
// clock refills no bucket. Immutable; any thread may read it.
//
// Limits go by this clock. What the rest of the world compares with its own clock goes by the machine's clock
// as it is now: the dates of tokens, HTTP dates, the times in logs.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <chrono>

namespace weir::net {

class Clock {
 public:
  // Goes on from `not_before` where the wall clock has been set back to an earlier instant: time that state
  // was kept at does not come again.
  explicit Clock(base::TimePoint not_before = {}) noexcept
      : wall_(std::max(machine_now(), not_before)), steady_(std::chrono::steady_clock::now()) {}

  // Returns the machine's clock, which somebody may set while weir runs.
  [[nodiscard]] static base::TimePoint machine_now() noexcept {
    return std::chrono::floor<base::Duration>(std::chrono::system_clock::now());
  }
  // Returns how far the machine's clock is ahead of this one; below zero: behind.
  [[nodiscard]] base::Duration machine_ahead() const noexcept { return machine_now() - now(); }

  // What now() adds to the monotonic clock of this machine: another process that counts by it goes on in the
  // same time.
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
  // The instant of the monotonic clock at which now() reaches `at`: what timers wait for.
  [[nodiscard]] std::chrono::steady_clock::time_point steady(base::TimePoint at) const noexcept {
    return steady_ + (at - wall_);
  }

 private:
  base::TimePoint wall_;
  std::chrono::steady_clock::time_point steady_;
};

}  // namespace weir::net
