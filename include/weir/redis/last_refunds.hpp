// Stores when this process last refunded a key: one time for each group of keys. A refund lowers the key's
// usage, so weir must not use a state of the key that it cached before the refund.
//
// The stores of all workers share one object, which must outlive the workers' event loops. Thread-safe.
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

  // Returns the group of a key. A refund of one key makes the cached states of all keys in its group
  // unusable, so there are many groups.
  //
  // The keys of one request should be in different groups. Otherwise the refund for one rule would make the
  // cached refusal by another rule unusable. The keys of a client for two rules differ in the same bits for
  // every client (name_key.cpp). The multiplication below puts most of these pairs of keys into different
  // groups.
  [[nodiscard]] static Group group_of(const limit::Key& key) noexcept {
    return static_cast<Group>(key.hi * 0x9e3779b97f4a7c15 >> (64 - std::bit_width(kGroups - 1)));
  }

  // Must be called when a refund is sent, and again when Redis has made the refund or may have made it. The
  // second call is needed because a worker may read the old state after the first call, before Redis makes
  // the refund.
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
