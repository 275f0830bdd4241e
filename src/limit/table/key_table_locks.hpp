// The locks of one bill (all charges of one request). weir holds them while it checks and charges the bill.
#pragma once

#include "limit/table/key_table_impl.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include <boost/container/static_vector.hpp>

namespace weir::limit {

// Locks the shards of a bill (all charges of a request) in ascending order. Then locks the overflow cells if
// a key has no slot.
class KeyTable::Impl::Locks {
 public:
  Locks(const Impl& table, std::span<const Charge> charges) : table_(table) {
    for (const Charge& charge : charges) {
      const std::size_t index = table_.index_of(charge.key);
      shards_[index / 64] |= std::uint64_t{1} << (index % 64);
      table_.shards[index].prefetch(charge.key);
    }
    for_each([](Shard& shard) { shard.mutex.lock(); });
  }
  ~Locks() {
    for_each([](Shard& shard) { shard.mutex.unlock(); });
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

  // Returns a new timestamp for the bill that holds these locks, and stores it in the locked shards.
  HybridTimestamp take_timestamp(base::TimePoint now) {
    HybridTimestamp last = 0;
    for_each([&](const Shard& shard) { last = std::max(last, shard.timestamp); });
    const HybridTimestamp timestamp = timestamp_after(last, now);
    for_each([&](Shard& shard) { shard.timestamp = timestamp; });
    return timestamp;
  }

  void lock_overflow() {
    if (!overflow_) overflow_ = std::unique_lock(table_.overflow.mutex);
  }

  // Returns the overflow cell of the charge. Earlier charges of the same bill to this cell are included: a
  // rule has several charges if it applies to several descriptors of a question. REQUIRES: lock_overflow()
  // was called.
  [[nodiscard]] Cell overflow_cell(const Charge& charge) const {
    for (auto earlier = pending_.rbegin(); earlier != pending_.rend(); ++earlier) {
      const auto& [made, cell] = *earlier;
      if (made->rule != charge.rule ||
          !table_.overflow.is_shared(charge.rule, made->limiter_id, charge.limiter_id))
        continue;
      return *made->limiter == *charge.limiter ? cell : carry_over(*made->limiter, cell, *charge.limiter);
    }
    return table_.overflow.cell(charge.rule, charge.limiter_id, *charge.limiter);
  }
  // Remembers the state that the charge gives to its overflow cell once the bill is charged. REQUIRES: the
  // charge outlives this object.
  void note_overflow(const Charge& charge, const Cell& next) { pending_.push_back({&charge, next}); }

 private:
  struct Pending {
    const Charge* charge;
    Cell next;
  };

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t word = 0; word < shards_.size(); ++word)
      for (std::uint64_t left = shards_[word]; left != 0; left &= left - 1)
        visit(table_.shards[word * 64 + static_cast<std::size_t>(std::countr_zero(left))]);
  }

  const Impl& table_;
  std::array<std::uint64_t, kMaxShards / 64> shards_{};
  std::unique_lock<std::mutex> overflow_;
  boost::container::static_vector<Pending, kMaxCharges> pending_;
};

}  // namespace weir::limit
