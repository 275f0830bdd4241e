// Finds the clients with the highest total cost in constant memory. The algorithm is Space-Saving (Metwally,
// Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005), with
// a cost for each request.
//
// There are K counters. A client that has a counter adds its cost to that counter. A client without a counter
// gets the counter with the smallest count. The counter keeps its count, and also stores this count as the
// possible error for the new client.
//
// Invariants; N is the sum of all costs
//  1. The sum of all counts is N.
//  2. For each client with a counter: count − error ≤ true cost of the client ≤ count, and error ≤ N / K.
//  3. The true cost of a client without a counter is at most `floor()`, which is the smallest count and at
//     most N / K. So every client that spent more than N / K has a counter.
//
// Merged summaries keep invariants 2 and 3; N is then the sum of all costs in both summaries (Agarwal,
// Cormode et al., "Mergeable summaries", 2012, §3).
//
// Pure. Allocates once. Finding a client costs one probe of a hash index. A new client usually costs no more.
// From time to time, one pass over all counters collects the counters with the smallest count. New clients
// get these counters one by one.
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
  static constexpr std::size_t kMost = 1024;  // the maximum number of counters
  static constexpr std::size_t kText = 39;    // the maximum size of a client's displayed text, in octets

  struct Counter {
    base::Digest128 client;
    std::uint64_t count = 0;
    std::uint64_t error = 0;
    std::array<char, kText> room{};
    std::uint8_t size = 0;
    std::uint32_t limiter_id = 0;  // the limit::LimiterId of the rule's limiter that counts the client

    [[nodiscard]] std::string_view text() const noexcept { return {room.data(), size}; }
  };

  // Creates an empty summary with this many counters. REQUIRES: 1 ≤ capacity ≤ kMost.
  explicit SpaceSaving(std::size_t capacity);

  // Adds a client's cost. If the client gets a new counter, calls `describe` with a buffer for the client's
  // text; `describe` must return the number of octets written. REQUIRES: the digest is keyed
  // (base/siphash.hpp), so that a client cannot choose its position in the index.
  template <class Describe>
  void add(const base::Digest128& client, std::uint64_t cost, Describe describe,
           std::uint32_t limiter_id = 0) {
    total_ += cost;
    if (auto* counter = find(client)) {
      counter->count += cost;
      return;
    }
    Counter& counter = take_over(client);
    counter.count += cost;
    counter.size = static_cast<std::uint8_t>(describe(std::span<char>(counter.room)));
    counter.limiter_id = limiter_id;
  }

  // Adds the counts of another summary to this one. Allocates memory.
  void merge(const SpaceSaving& other);
  void clear() noexcept;

  // Returns the counters in any order.
  [[nodiscard]] std::span<const Counter> counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  // Returns the maximum cost that a client without a counter can have spent.
  [[nodiscard]] std::uint64_t floor() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // Returns the memory that a summary of this capacity uses, in bytes.
  [[nodiscard]] static std::size_t size_of(std::size_t capacity) noexcept;

 private:
  using Index = std::uint16_t;
  static constexpr Index kEmptyEntry = 0xffff;

  [[nodiscard]] Counter* find(const base::Digest128& client) noexcept {
    for (std::size_t at = client.lo & mask_;; at = (at + 1) & mask_) {
      if (index_[at] == kEmptyEntry) return nullptr;
      if (counters_[index_[at]].client == client) return &counters_[index_[at]];
    }
  }
  [[nodiscard]] Counter& take_over(const base::Digest128& client);
  [[nodiscard]] Index smallest() noexcept;
  void enter(Index index) noexcept;
  void remove(Index index) noexcept;
  void reindex() noexcept;

  std::size_t capacity_;
  std::size_t mask_;  // size of the index minus one; the size is a power of two
  // a hash table with open addressing; each entry is the index of a counter, or kEmptyEntry
  std::vector<Index> index_;
  std::vector<Counter> counters_;  // at most capacity_ counters
  // The counters that had the smallest count when they were collected. Some of them may have a higher count
  // now.
  std::vector<Index> smallest_;
  std::uint64_t smallest_count_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace weir::observe
