// The overflow cells. A key for which the table has no slot uses an overflow cell: a state that all such keys
// share. Each limiter ID of a rule has its own overflow cell, because the limiters of a rule count
// separately.
//
// A rule always has overflow cells for its first two limiter IDs (the rule itself and its elastic limiter).
// The first kMostExtraCells further limiter IDs that need a cell get their own. All later limiter IDs share
// the two cells of their rule. Limiters that share a cell may count in different units. So each cell stores
// its limiter, and is converted when another limiter uses it.
//
// Owned by the key table. REQUIRES for every member: the caller holds `mutex`, which is locked after the
// mutexes of all shards.
#pragma once

#include "weir/limit/charge.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include <boost/unordered/unordered_flat_map.hpp>

namespace weir::limit {

class Overflow {
 public:
  static constexpr std::size_t kMostExtraCells = 512;
  static constexpr std::size_t kMostCells = kMostExtraCells + 2 * kMaxRules;

  // Reserves the memory of all cells now, because an allocation must not fail under the locks of a bill.
  // Pages become resident as they are used.
  Overflow() { cells_.reserve(kMostCells); }

  // Returns true if an overflow cell of the rule (a state that keys without a slot share) may still hold a
  // charge. The caller need not hold `mutex`, but must hold the lock of the key's shard. Earlier charges of
  // the same key held that lock, too, so their effect is visible.
  [[nodiscard]] bool may_be_live(RuleIndex rule, base::TimePoint now) const noexcept {
    return now.time_since_epoch().count() < live_until_[rule].load(std::memory_order_relaxed);
  }

  // Returns the overflow cell of a limiter ID (the state that its keys without a slot share), in the units of
  // `limiter`.
  [[nodiscard]] Cell cell(RuleIndex rule, LimiterId limiter_id, const Limiter& limiter) const noexcept {
    const auto found = cells_.find(cell_key_of(rule, limiter_id));
    if (found == cells_.end()) return {};
    const auto& [units, cell] = found->second;
    return units == limiter ? cell : carry_over(units, cell, limiter);
  }

  // Returns true if two limiter IDs of a rule use the same overflow cell.
  [[nodiscard]] bool is_shared(RuleIndex rule, LimiterId one, LimiterId other) const noexcept {
    return cell_key_of(rule, one) == cell_key_of(rule, other);
  }

  void put(RuleIndex rule, LimiterId limiter_id, const Limiter& limiter, const Cell& cell) noexcept {
    const auto [entry, is_new] = cells_.try_emplace(cell_key_of(rule, limiter_id), limiter, cell);
    if (is_new)
      extra_cells_ += (entry->first & kLimiterIdMask) > 1 ? 1 : 0;
    else
      entry->second = {limiter, cell};
    if (holds(limiter)) return;  // permits end when they are released, not by time
    const auto until = drained_at(limiter, cell).time_since_epoch().count();
    if (until > live_until_[rule].load(std::memory_order_relaxed))
      live_until_[rule].store(until, std::memory_order_relaxed);
  }

  void note_charge() noexcept { ++charges_; }
  void note_refusal() noexcept { ++refusals_; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [cell_key, shared] : cells_)
      visit(static_cast<RuleIndex>(cell_key >> kRuleAt), static_cast<LimiterId>(cell_key & kLimiterIdMask),
            shared.units, shared.cell);
  }

  void forget(RuleIndex rule) noexcept {
    live_until_[rule].store(0, std::memory_order_relaxed);
    erase_if(cells_, [&](const auto& entry) {
      const bool belongs_to_rule = entry.first >> kRuleAt == rule;
      if (belongs_to_rule && (entry.first & kLimiterIdMask) > 1) --extra_cells_;
      return belongs_to_rule;
    });
  }

  [[nodiscard]] std::uint64_t charges() const noexcept { return charges_; }
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }

  mutable std::mutex mutex;

 private:
  static constexpr unsigned kRuleAt = 32;
  static constexpr std::uint64_t kLimiterIdMask = 0xffff'ffff;

  struct Shared {
    Limiter units;
    Cell cell;
    Shared(const Limiter& limiter, const Cell& state) : units(limiter), cell(state) {}
  };

  // Returns the key under which `cells_` has the cell of a limiter ID. A limiter ID that cannot get a cell of
  // its own uses the first or the second cell of its rule. The two charges of an elastic rule never use the
  // same cell.
  [[nodiscard]] std::uint64_t cell_key_of(RuleIndex rule, LimiterId limiter_id) const noexcept {
    const std::uint64_t first = std::uint64_t{rule} << kRuleAt;
    const std::uint64_t own = first | limiter_id;
    return limiter_id < 2 || extra_cells_ < kMostExtraCells || cells_.contains(own)
               ? own
               : first | (limiter_id & 1);
  }

  boost::unordered_flat_map<std::uint64_t, Shared> cells_;
  // For each rule, by RuleIndex: when the last of its overflow cells (states that keys without a slot share)
  // will be fresh again, in µs since the epoch. Written under the lock.
  std::array<std::atomic<std::int64_t>, kMaxRules> live_until_{};
  std::size_t extra_cells_ = 0;  // number of cells of limiter IDs other than a rule's first two
  std::uint64_t charges_ = 0;
  std::uint64_t refusals_ = 0;
};

}  // namespace weir::limit
