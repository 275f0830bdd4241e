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
    Apart,  // they no longer agree, or differ the other way, or twice or half as much as at the last Apart
    Agree,  // they agree again
  };

  // Takes what the machine's clock is ahead now. Must be called by one thread alone.
  Change look(base::Duration ahead) noexcept {
    const auto before = seconds();
    const auto after = next(before, ahead);
    if (after == before) return Change::None;
    seconds_.store(after.count(), std::memory_order_relaxed);
    if (after == after.zero()) {
      told_ = after;
      return Change::Agree;
    }
    if (!is_news(after)) return Change::None;
    told_ = after;
    return Change::Apart;
  }

  // Returns how far the machine's clock was ahead at the last look. Any thread may call it.
  [[nodiscard]] std::chrono::seconds seconds() const noexcept {
    return std::chrono::seconds(seconds_.load(std::memory_order_relaxed));
  }

 private:
  // A clock that runs a little too fast or too slow is news again only when it is twice as far away.
  [[nodiscard]] bool is_news(std::chrono::seconds step) const noexcept {
    const bool same_side = (step < step.zero()) == (told_ < told_.zero());
    const auto now = std::chrono::abs(step), then = std::chrono::abs(told_);
    return !same_side || now >= 2 * then || 2 * now <= then;
  }
  // Clocks that were apart agree again only well within the tolerance, unless they came close in one step.
  [[nodiscard]] static std::chrono::seconds next(std::chrono::seconds step, base::Duration ahead) noexcept {
    const bool moved = std::chrono::abs(ahead - step) > kTolerance;
    const bool near = std::chrono::abs(ahead) <= kTolerance;
    if (near && (moved || std::chrono::abs(ahead) <= kTolerance / 2)) return std::chrono::seconds{0};
    return moved ? std::chrono::round<std::chrono::seconds>(ahead) : step;
  }

  std::atomic<std::chrono::seconds::rep> seconds_{0};
  std::chrono::seconds told_{0};  // at the last Apart, if none was followed by Agree
};

}  // namespace weir::net
