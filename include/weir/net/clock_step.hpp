// How far the machine's clock was set away from weir's own (weir/net/clock.hpp) since weir started.
//
// The main thread looks several times a second. The step is zero while the clocks agree, and a whole number
// of seconds otherwise. So what is told with it (X-RateLimit-Reset, the dashboard's times) does not flicker
// with each reading of two clocks. It is at most kTolerance off.
#pragma once

#include "weir/base/time.hpp"

#include <atomic>

namespace weir::net {

class ClockStep {
 public:
  static constexpr base::Duration kTolerance{2'000'000};
  enum class Change {
    None,
    Apart,  // they agreed, and no longer do
    Agree,  // they agree again
  };

  // Takes what the machine's clock is ahead now. Must be called by one thread alone.
  Change look(base::Duration ahead) noexcept {
    const auto before = seconds();
    const auto after = next(before, ahead);
    if (after == before) return Change::None;
    seconds_.store(after.count(), std::memory_order_relaxed);
    if (after == after.zero()) return Change::Agree;
    return before == before.zero() ? Change::Apart : Change::None;
  }

  // Returns how far the machine's clock was ahead at the last look. Any thread may call it.
  [[nodiscard]] std::chrono::seconds seconds() const noexcept {
    return std::chrono::seconds(seconds_.load(std::memory_order_relaxed));
  }

 private:
  // Clocks that were apart agree again only well within the tolerance, unless they came close in one step.
  [[nodiscard]] static std::chrono::seconds next(std::chrono::seconds step, base::Duration ahead) noexcept {
    const bool moved = std::chrono::abs(ahead - step) > kTolerance;
    const bool near = std::chrono::abs(ahead) <= kTolerance;
    if (near && (moved || std::chrono::abs(ahead) <= kTolerance / 2)) return std::chrono::seconds{0};
    return moved ? std::chrono::round<std::chrono::seconds>(ahead) : step;
  }

  std::atomic<std::chrono::seconds::rep> seconds_{0};
};

}  // namespace weir::net
