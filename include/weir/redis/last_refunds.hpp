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
#include <span>

#include <boost/container/small_vector.hpp>

namespace weir::redis {

class LastRefunds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Group = std::uint16_t;
  using Groups = boost::container::small_vector<Group, 4>;

  // Keys of one group end what is known of each other, so groups are many: where two lines of one bill met in
  // one, and one of them were given back whenever the other refuses, that refusal would never be known. The
  // product, so that clients whose names differ by the same (name_key.cpp) do not all meet alike.
  [[nodiscard]] static Group group_of(const limit::Key& key) noexcept {
    return static_cast<Group>(key.hi * 0x9e3779b97f4a7c15 >> (64 - std::bit_width(kGroups - 1)));
  }

  // To be noted when the refund leaves and when it is known to have been carried out (or may have been): in
  // between, others may still read the state before it.
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
