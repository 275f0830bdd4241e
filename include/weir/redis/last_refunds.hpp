// When keys were last given something back, as far as this process knows: what a store has learned of a key
// before that may be later than the truth.
//
// Shared by the stores of all workers and outlives their loops; any thread may call anything.
#pragma once

#include "weir/limit/charge.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir::redis {

class LastRefunds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A bit for each group that has a key in it. Keys are digests, so each group has one in 64 of them.
  using Groups = std::uint64_t;

  [[nodiscard]] static Groups group_of(const limit::Key& key) noexcept {
    return Groups{1} << (key.hi % kGroups);
  }

  // To be noted when the refund leaves and when it is known to have been carried out (or may have been): in
  // between, others may still read the state before it.
  void note(Groups groups, Time now) noexcept {
    for (; groups != 0; groups &= groups - 1)
      raise(last_[static_cast<std::size_t>(std::countr_zero(groups))], now);
  }
  [[nodiscard]] bool noted_since(const limit::Key& key, Time then) const noexcept {
    return last_[key.hi % kGroups].load(std::memory_order_acquire) >= then.time_since_epoch().count();
  }

 private:
  using Tick = std::atomic<Time::rep>;
  static constexpr std::size_t kGroups = 64;

  static void raise(Tick& last, Time now) noexcept {
    auto seen = last.load(std::memory_order_relaxed);
    while (seen < now.time_since_epoch().count() &&
           !last.compare_exchange_weak(seen, now.time_since_epoch().count(), std::memory_order_release)) {
    }
  }

  std::array<Tick, kGroups> last_{};
};

}  // namespace weir::redis
