// Who comes most, in constant memory: Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient computation
// of frequent and top-k elements in data streams", 2005), for clients that weigh their cost.
//
// K counters. A client that has one adds to it; else a newcomer takes the smallest counter over, together
// with what that had counted, and remembers it as its possible error.
//
// Invariants, for N the sum of all costs
//  1. The counts sum up to N.
//  2. Of each client that has a counter: count − error ≤ its true cost ≤ count, and error ≤ N / K.
//  3. Of a client that has none the true cost is at most `floor()`, the smallest count, which is at most N /
//  K: so
//     everybody who spent more than N / K is there.
//
// 2 and 3 hold of merged summaries as well, N being that of both (Agarwal, Cormode et al., "Mergeable
// summaries", 2012, §3).
//
// Pure. The memory is claimed at once. A client that is found costs a probe of a hash index; one that is not
// found, mostly as little: the smallest counters are gathered in one pass over all, and used up one by one.
#pragma once

#include "weir/base/siphash.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::observe {

class SpaceSaving {
 public:
  static constexpr std::size_t kMost = 1024;  // of counters
  static constexpr std::size_t kText = 39;    // octets of what a client is shown as

  struct Counter {
    base::Digest128 client;
    std::uint64_t count = 0;
    std::uint64_t error = 0;
    std::array<char, kText> room{};
    std::uint8_t size = 0;
    std::uint32_t ledger = 0;  // which of the rule's limiters counts the client (limit::Ledger)

    [[nodiscard]] std::string_view text() const noexcept { return {room.data(), size}; }
  };

  // REQUIRES 1 ≤ capacity ≤ kMost.
  explicit SpaceSaving(std::size_t capacity);

  // `describe`: called with room for the client's text where it gets a counter; returns how much of it was
  // written. Digests are keyed (base/siphash.hpp), so nobody can aim at a place of the index.
  template <class Describe>
  void add(const base::Digest128& client, std::uint64_t cost, Describe describe, std::uint32_t ledger = 0) {
    total_ += cost;
    if (auto* counter = find(client)) {
      counter->count += cost;
      return;
    }
    Counter& counter = take_over(client);
    counter.count += cost;
    counter.size = static_cast<std::uint8_t>(describe(std::span<char>(counter.room)));
    counter.ledger = ledger;
  }

  // Adds what another has seen. Allocates.
  void merge(const SpaceSaving& other);
  void clear() noexcept;

  // In no order.
  [[nodiscard]] std::span<const Counter> counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  // The most that a client without a counter can have spent.
  [[nodiscard]] std::uint64_t floor() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // What one of such a capacity takes, in bytes.
  [[nodiscard]] static std::size_t size_of(std::size_t capacity) noexcept;

 private:
  using Place = std::uint16_t;
  static constexpr Place kNowhere = 0xffff;

  [[nodiscard]] Counter* find(const base::Digest128& client) noexcept {
    for (std::size_t at = client.lo & mask_;; at = (at + 1) & mask_) {
      if (index_[at] == kNowhere) return nullptr;
      if (counters_[index_[at]].client == client) return &counters_[index_[at]];
    }
  }
  [[nodiscard]] Counter& take_over(const base::Digest128& client);
  [[nodiscard]] Place smallest() noexcept;
  void enter(Place place) noexcept;
  void remove(Place place) noexcept;
  void reindex() noexcept;

  std::size_t capacity_;
  std::size_t mask_;          // of the index: a power of two of places, three quarters of them free at least
  std::vector<Place> index_;  // open addressing: the place of a counter, or kNowhere
  std::vector<Counter> counters_;  // at most capacity_
  std::vector<Place> smallest_;    // of those with the smallest count, some that nobody has added to since
  std::uint64_t smallest_count_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace weir::observe
