// The parts of a key table, for the source files that implement it.
#pragma once

#include "limit/algorithms/arithmetic.hpp"
#include "limit/log/log.hpp"
#include "limit/table/limiter_versions.hpp"
#include "limit/table/overflow.hpp"
#include "limit/table/resets.hpp"
#include "limit/table/shape.hpp"
#include "limit/table/shard.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/pair.hpp"
#include "weir/limit/rescale.hpp"
#include "weir/limit/settle.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

namespace weir::limit {

struct KeyTable::Impl {
  // One charge of a bill while its locks are held.
  struct LineCheck {
    Slot* slot = nullptr;  // null: the overflow cell answered
    // The limiter whose numbers the cell is in: the charge's, or a newer version of its rule.
    const Limiter* limiter = nullptr;
    RuleIndex rule = 0;
    Due due;                  // the value that the pin on the slot hides
    bool claimed = false;     // the slot is new
    bool inherits = false;    // the new slot started with the state of the overflow cell
    Step step;                // a log does not use `next`
    std::uint64_t mark = 0;   // log only: where to enter the cost
    LogStore::Ref spare = 0;  // log only: the chunk reserved for the entry
    Cost most = 0;            // log that counts beyond its limit: the units it keeps; otherwise 0
  };

  explicit Impl(std::size_t max_keys)
      : shape(std::clamp(max_keys, std::size_t{1}, kMaxKeys)),
        pages(shape.shards * shape.shard_size),
        logs(shape.chunks),
        shards(std::make_unique<Shard[]>(shape.shards)) {
    for (std::size_t i = 0; i < shape.shards; ++i) {
      std::byte* at = pages.at(i * shape.shard_size);
      shards[i].open(reinterpret_cast<Shard::Tag*>(at), reinterpret_cast<Slot*>(at + shape.tags_size),
                     shape.buckets, logs);
    }
  }

  [[nodiscard]] std::size_t index_of(const Key& key) const noexcept {
    return (key.hi >> 56) & (shape.shards - 1);
  }
  [[nodiscard]] Shard& shard_of(const Key& key) const noexcept { return shards[index_of(key)]; }

  class Locks;
  void renew(Slot& slot) noexcept;
  // These four are in key_table_versions.cpp. After a reload, resolve() returns the charge in the numbers of
  // the slot's cell. It may convert the cell.
  struct Resolved {
    Charge charge;
    bool apart = false;  // not to be charged to this cell
  };
  Resolved resolve(Slot& slot, const Charge& charge, base::TimePoint now) noexcept;
  // Returns true if the slot's cell may contain charges made under `charge`'s RuleIndex.
  [[nodiscard]] bool is_same_generation(const Slot& slot, const Charge& charge) const;
  void carry(Slot& slot, const Limiter* from, const Limiter& to, RuleIndex rule,
             base::TimePoint now) noexcept;
  void carry_log(Slot& slot, const SlidingLog& from, const SlidingLog& to, RuleIndex rule,
                 base::TimePoint now) noexcept;
  LineCheck check(const Charge& charge, base::TimePoint now, Locks& locks);
  LineCheck check_shared(const Charge& charge, base::TimePoint now, Locks& locks);
  void check_log(const SlidingLog& limiter, const Charge& charge, base::TimePoint now, LineCheck& line);
  // Decides a charge that only counts (limit/pair.hpp).
  void follow(const Charge& charge, const LineCheck& decider, base::TimePoint now, LineCheck& line) const;
  [[nodiscard]] LogStore::Ref make_room(Log& log, const Charge& charge, const LineCheck& line);
  void finish(const Charge& charge, const LineCheck& line, bool charged);
  void enter(const SlidingLog& limiter, const Charge& charge, const LineCheck& line);
  // Changes the cell or log of an earlier charge, or the shared cell that answered for it. Calls `anew`,
  // under the shard's lock, if the key was evicted: it had drained, so it equals a fresh key. `change` and
  // `change_log` receive the charge in the present numbers of the cell, which a reload may have changed.
  struct Where {
    HybridTimestamp charged;  // the earliest timestamp of the charge
    bool overflow;            // the charge is in the overflow cell of its limiter ID
    base::TimePoint now;
    HybridTimestamp* timestamp;  // receives the timestamp of the change, or null. Shared cells have none
  };
  template <class Change, class ChangeLog, class Anew>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log, Anew anew);
  template <class Change, class ChangeLog>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log) {
    return amend(asked, where, change, change_log, [](Shard&) {});
  }
  bool settle_log(const SlidingLog& limiter, RuleIndex rule, Log& log, const Settled& settled, Cost reserved);
  void settle_anew(const Charge& charge, const Settled& settled, Shard& shard);
  // Return the state of a key without a slot. inherited() REQUIRES: the caller holds the lock of the overflow
  // cells.
  [[nodiscard]] Cell inherited(const Charge& charge, base::TimePoint now) const noexcept;
  [[nodiscard]] Cell fresh(const Charge& charge, base::TimePoint now) const;

  // Reports a change of permits to the watcher (key_table_permits.cpp). REQUIRES: the caller holds the
  // shard's lock.
  void report_permits(const Charge& charge, const Limiter& limiter, const Cell& before,
                      const Cell& after) const noexcept;

  [[nodiscard]] SavedKey saved(const Slot& slot, std::span<const SavedRule> rules) const;
  void fill(Slot& slot, RuleIndex rule, std::span<const LogEntry> entries, unsigned cost_bits) noexcept;
  // Gives each rule its part of the slots and chunks (limit/table/quota.hpp).
  void share_out();

  const Shape shape;
  const Pages pages;
  LogStore logs;
  const std::unique_ptr<Shard[]> shards;
  Overflow overflow;
  LimiterVersions limiter_versions;
  Resets resets;
  PermitObserver permit_observer;      // changes only while no shard is watched
  std::atomic<std::uint64_t> hand{0};  // the next bucket to sweep, counted through all shards
};

}  // namespace weir::limit
