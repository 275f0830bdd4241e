// When each group of keys last had a refund by this process. A store discards state that it read before a
// refund, because that state may be later than the real one.
//
// Shared by the stores of all workers, and outlives their loops. Thread-safe.
#pragma once

#include "weir/limit/charge.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <boost/container/small_vector.hpp>

namespace weir::redis {

class LastRefunds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Group = std::uint16_t;
  using Groups = boost::container::small_vector<Group, 4>;

  // A refund of one key ends the cached state of all keys in its group, so there are many groups. Two lines
  // of one bill in one group would defeat the cache: the refusal of one line refunds the other. The
  // multiplication spreads pairs of keys that differ by a fixed amount (name_key.cpp), so such pairs do not
  // all share a group.
  [[nodiscard]] static Group group_of(const limit::Key& key) noexcept {
    return static_cast<Group>(key.hi * 0x9e3779b97f4a7c15 >> (64 - std::bit_width(kGroups - 1)));
  }

  // Must be called when the refund is sent, and again when Redis has, or may have, carried it out. In
  // between, others may still read the state from before the refund.
  void note(std::span<const Group> groups, Time now) noexcept {
    for (const auto group : groups) raise(last_[group], now);
  }
  [[nodiscard]] bool noted_since(const limit::Key& key, Time then) const noexcept {
    return last_[group_of(key)].load(std::memory_order_acquire) >= then.time_since_epoch().count();
  }

 private:
  using Tick = std::atomic<Time::rep>;
  static constexpr std::size_t kGroups = 4096;

  static void raise(Tick& last, Time now) noexcept {
    auto seen = last.load(std::memory_order_relaxed);
    while (seen < now.time_since_epoch().count() &&
           !last.compare_exchange_weak(seen, now.time_since_epoch().count(), std::memory_order_release)) {
    }
  }

  std::array<Tick, kGroups> last_{};
};

}  // namespace weir::redis
