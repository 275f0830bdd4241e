// Counts the requests at upstreams, over all workers, and rejects requests of low priority when there are too
// many.
//
// Priority 0 may use all of `max_in_flight`. Each lower priority may use a twentieth of `max_in_flight` less
// than the next higher priority. Example with max_in_flight = 200: priority 0 may use 200, priority 1 may use
// 190, priority 5 (the default) 150, and priority 9 110. So the lowest priority is rejected first, and the
// number of places that only higher priorities may use never changes. One comparison admits or rejects a
// request; no history is needed.
//
// Requests that wait in the shaper are not counted, because the queue bounds their number. Requests that weir
// answers itself are not counted either. All functions may be called by any thread. server::Program owns the
// object.
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

  // Returns true if there is a bound. Without a bound, callers skip enter() and leave(), so that workers do
  // not contend for the counter.
  [[nodiscard]] bool bounded() const noexcept { return most() != 0; }
  // Sets the bound after a reload. It applies to requests that enter from now on.
  void set_most(std::uint64_t most) noexcept { most_.store(most, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // Returns count() ÷ the bound. Returns 0 without a bound. The result can exceed 1, because enter_again()
  // ignores the bound.
  [[nodiscard]] double fullness() const noexcept {
    const auto most = this->most();
    return most == 0 ? 0 : static_cast<double>(count()) / static_cast<double>(most);
  }

  // Returns the number of requests in flight, of all priorities together, at which requests of this priority
  // are rejected. At least 1.
  [[nodiscard]] std::uint64_t bound(policy::Priority priority) const noexcept {
    constexpr std::uint64_t kSteps = 20;
    const auto most = this->most();
    if (most == 0) return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t kept_free = most / kSteps * priority + most % kSteps * priority / kSteps;
    return std::max<std::uint64_t>(1, most - kept_free);
  }

  // Counts a request and returns true if its priority has room. Check and count are one atomic step, so that
  // two requests cannot take the last place. A refused request is never counted, not even for a moment.
  // Otherwise a refused request could keep out a request of a higher priority.
  [[nodiscard]] bool enter(policy::Priority priority) noexcept {
    const auto most = bound(priority);
    auto count = count_.load(std::memory_order_relaxed);
    do {
      if (count >= most) return false;
    } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
    return true;
  }
  // Counts a request that has waited in the shaper without being counted, and now departs. Ignores the bound.
  void enter_again() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // Removes a request from the count.
  void leave() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace weir::proxy
