// How many requests the upstreams work on, over all workers, and who is shed when there are too many.
//
// The rule, for whoever reads it at night: priority 0 may fill `max_in_flight` whole, and each priority below
// it a twentieth less than the one above. With max_in_flight = 200 that is 200, 190, … 150 for the default of
// 5, … 110 for 9. So the lowest goes first, and what is kept free for the higher ones is always the same. It
// needs no history: a request is admitted or shed by one comparison.
//
// Requests that wait in the shaper do not count (their queue bounds them), nor does what weir answers itself.
// Any thread may call anything; it is one number, touched only where a bound is configured.
#pragma once

#include "weir/policy/route.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace weir::proxy {

class InFlight {
 public:
  // `most`: 0 for no bound.
  explicit InFlight(std::uint64_t most) noexcept : most_(most) {}

  // Whether there is a bound: else nobody need enter, so that requests share nothing.
  [[nodiscard]] bool bounded() const noexcept { return most() != 0; }
  // For a reload. Who has not entered yet goes by it; others leave as they came.
  void set_most(std::uint64_t most) noexcept { most_.store(most, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // How full it is, from 0 to 1 and a little beyond: who comes back from a queue enters whatever the bound.
  [[nodiscard]] double fullness() const noexcept {
    const auto most = this->most();
    return most == 0 ? 0 : static_cast<double>(count()) / static_cast<double>(most);
  }

  // The most that there may be, of all priorities together, for one of this priority to enter.
  [[nodiscard]] std::uint64_t bound(policy::Priority priority) const noexcept {
    constexpr std::uint64_t kSteps = 20;
    const auto most = this->most();
    if (most == 0) return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t kept_free = most / kSteps * priority + most % kSteps * priority / kSteps;
    return std::max<std::uint64_t>(1, most - kept_free);
  }

  // Whether there is room. Counted at once, so that two cannot take the last place; who is refused was never
  // counted, or for that moment it would keep out one of a better priority.
  [[nodiscard]] bool enter(policy::Priority priority) noexcept {
    const auto most = bound(priority);
    auto count = count_.load(std::memory_order_relaxed);
    do {
      if (count >= most) return false;
    } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
    return true;
  }
  // One that was let in, and waited in the shaper since.
  void enter_again() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // Who has entered.
  void leave() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace weir::proxy
