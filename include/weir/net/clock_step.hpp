// ClockStep measures how far the machine's clock was set away from weir's own clock (weir/net/clock.hpp)
// since the start. This difference is called the step.
//
// The program owns one object. The main thread calls update() several times a second. The step is zero while
// the clocks agree. Otherwise it is a whole number of seconds, so values computed with it (X-RateLimit-Reset,
// the dashboard's times) do not vary with each reading of the two clocks. The error of the step is at most
// kTolerance.
#pragma once

#include "weir/base/time.hpp"

#include <atomic>

namespace weir::net {

class ClockStep {
 public:
  static constexpr base::Duration kTolerance{2'000'000};
  enum class Change {
    None,
    // The clocks disagree now. update() returns Apart again only if the difference has changed sign, doubled
    // or halved since it last returned Apart.
    Apart,
    Agree,  // the clocks agree again
  };

  // Updates the step. `ahead`: how far the machine's clock is ahead now. Only one thread may call update().
  Change update(base::Duration ahead) noexcept {
    const auto before = seconds();
    const auto after = next(before, ahead);
    if (after == before) return Change::None;
    seconds_.store(after.count(), std::memory_order_relaxed);
    if (after == after.zero()) {
      reported_ = after;
      return Change::Agree;
    }
    if (!is_news(after)) return Change::None;
    reported_ = after;
    return Change::Apart;
  }

  // Returns the step (the difference of the clocks) that update() computed last. Positive: the machine's
  // clock is ahead. Thread-safe.
  [[nodiscard]] std::chrono::seconds seconds() const noexcept {
    return std::chrono::seconds(seconds_.load(std::memory_order_relaxed));
  }

 private:
  // Returns true if update() must report `step`, because it has changed sign, doubled or halved since the
  // last report. So a clock that runs slightly too fast or slow causes few reports.
  [[nodiscard]] bool is_news(std::chrono::seconds step) const noexcept {
    const bool same_side = (step < step.zero()) == (reported_ < reported_.zero());
    const auto now = std::chrono::abs(step), then = std::chrono::abs(reported_);
    return !same_side || now >= 2 * then || 2 * now <= then;
  }
  // Returns the new step. `step`: the old step. `ahead`: how far the machine's clock is ahead now.
  // * |ahead| ≤ kTolerance / 2: zero.
  // * `ahead` is within kTolerance of the old step: the old step.
  // * Otherwise: zero if |ahead| ≤ kTolerance, else `ahead` rounded to seconds.
  [[nodiscard]] static std::chrono::seconds next(std::chrono::seconds step, base::Duration ahead) noexcept {
    const bool moved = std::chrono::abs(ahead - step) > kTolerance;
    const bool near = std::chrono::abs(ahead) <= kTolerance;
    if (near && (moved || std::chrono::abs(ahead) <= kTolerance / 2)) return std::chrono::seconds{0};
    return moved ? std::chrono::round<std::chrono::seconds>(ahead) : step;
  }

  std::atomic<std::chrono::seconds::rep> seconds_{0};
  std::chrono::seconds reported_{0};  // the step that the last Change::Apart reported; zero after Agree
};

}  // namespace weir::net
