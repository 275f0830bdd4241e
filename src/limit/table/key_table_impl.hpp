// The members of a key table, for the source files that implement it.
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
  // The check of one charge of a bill. Exists while the locks of the bill are held.
  struct LineCheck {
    Slot* slot = nullptr;  // null: the overflow cell answered
    // The limiter in whose numbers the cell counts: the charge's limiter, or a newer version of it.
    const Limiter* limiter = nullptr;
    RuleIndex rule = 0;
    Due due;                  // the slot's own value, which a pin replaces for now
    bool claimed = false;     // the slot is new
    bool inherits = false;    // the new slot started with the state of the overflow cell
    Step step;                // the outcome and new state; for a log, `next` is unused
    std::uint64_t mark = 0;   // log only: where to enter the cost
    LogStore::Ref spare = 0;  // log only: the chunk reserved for the entry
    Cost most = 0;            // the units that a log beyond its limit keeps; 0 unless the log only counts
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
  // The next four functions are in key_table_versions.cpp. After a reload, a slot's cell and a charge may be
  // in different numbers. resolve() returns the charge in the numbers of the cell; it may convert the cell.
  struct Resolved {
    Charge charge;
    bool apart = false;  // true: must be charged to the overflow cell instead
  };
  Resolved resolve(Slot& slot, const Charge& charge, base::TimePoint now) noexcept;
  // Returns true if the slot's cell may contain charges that were made under `charge`'s RuleIndex.
  [[nodiscard]] bool is_same_generation(const Slot& slot, const Charge& charge) const;
  void carry(Slot& slot, const Limiter* from, const Limiter& to, RuleIndex rule,
             base::TimePoint now) noexcept;
  void carry_log(Slot& slot, const SlidingLog& from, const SlidingLog& to, RuleIndex rule,
                 base::TimePoint now) noexcept;
  LineCheck check(const Charge& charge, base::TimePoint now, Locks& locks);
  LineCheck check_shared(const Charge& charge, base::TimePoint now, Locks& locks);
  void check_log(const SlidingLog& limiter, const Charge& charge, base::TimePoint now, LineCheck& line);
  // Replaces the outcome in `line` for a charge that only counts (limit/pair.hpp).
  void follow(const Charge& charge, const LineCheck& decider, base::TimePoint now, LineCheck& line) const;
  [[nodiscard]] LogStore::Ref make_room(Log& log, const Charge& charge, const LineCheck& line);
  void finish(const Charge& charge, const LineCheck& line, bool charged);
  void enter(const SlidingLog& limiter, const Charge& charge, const LineCheck& line);
  // Changes the cell or log of an earlier charge, or the overflow cell that answered for the charge. If the
  // key was evicted, calls `anew` under the shard's lock: the key had drained, so it equals a fresh key. A
  // reload may have changed the numbers of the cell. `change` and `change_log` receive the charge in its
  // present numbers.
  struct Where {
    HybridTimestamp charged;  // the earliest timestamp that the charge can have
    bool overflow;            // the charge is in the overflow cell of its limiter ID
    base::TimePoint now;
    // Receives the timestamp of the change, unless it is null. Overflow cells have no timestamps.
    HybridTimestamp* timestamp;
  };
  template <class Change, class ChangeLog, class Anew>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log, Anew anew);
  template <class Change, class ChangeLog>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log) {
    return amend(asked, where, change, change_log, [](Shard&) {});
  }
  bool settle_log(const SlidingLog& limiter, RuleIndex rule, Log& log, const Settled& settled, Cost reserved);
  void settle_anew(const Charge& charge, const Settled& settled, Shard& shard);
  // Return the state with which a new slot starts. REQUIRES for inherited(): the caller holds the lock of the
  // overflow cells.
  [[nodiscard]] Cell inherited(const Charge& charge, base::TimePoint now) const noexcept;
  [[nodiscard]] Cell fresh(const Charge& charge, base::TimePoint now) const;

  // Reports a change of permits to the watcher (key_table_permits.cpp). REQUIRES: the caller holds the
  // shard's lock.
  void report_permits(const Charge& charge, const Limiter& limiter, const Cell& before,
                      const Cell& after) const noexcept;

  [[nodiscard]] SavedKey saved(const Slot& slot, std::span<const SavedRule> rules) const;
  void fill(Slot& slot, RuleIndex rule, std::span<const LogEntry> entries, unsigned cost_bits) noexcept;
  // Gives each rule its part of the slots and of the chunks (limit/table/quota.hpp).
  void share_out();

  const Shape shape;
  const Pages pages;
  LogStore logs;
  const std::unique_ptr<Shard[]> shards;
  Overflow overflow;
  LimiterVersions limiter_versions;
  Resets resets;
  PermitObserver permit_observer;      // changes only while no shard is watched
  std::atomic<std::uint64_t> hand{0};  // number of the next bucket to sweep, counted through all shards
};

}  // namespace weir::limit
