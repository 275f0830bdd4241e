// The private members of KeyTable, for the source files that implement it.
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
  // The result of checking one charge of a bill. Exists only while the locks of the bill are held.
  struct ChargeCheck {
    Slot* slot = nullptr;  // null: the overflow cell decided
    // The limiter that can read the cell: the charge's own limiter or, after a reload, its newer version.
    const Limiter* limiter = nullptr;
    RuleIndex rule = 0;
    SlotInfo due;             // the value of slot->due before this bill pinned the slot
    bool claimed = false;     // the slot was claimed for this charge
    bool inherits = false;    // the claimed slot started with a copy of the overflow cell
    Step step;                // the outcome and new state; for a log, `next` is unused
    std::uint64_t mark = 0;   // for a log: the time step (mark) at which to enter the cost
    LogStore::Ref spare = 0;  // for a log: the chunk reserved for the entry
    // if a log is charged beyond its limit: the most units that it may keep (most_counted()); otherwise 0
    Cost most = 0;
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
      shards[i].penalties.open(shape.penalties);
    }
  }

  [[nodiscard]] std::size_t index_of(const Key& key) const noexcept {
    return (key.hi >> 56) & (shape.shards - 1);
  }
  [[nodiscard]] Shard& shard_of(const Key& key) const noexcept { return shards[index_of(key)]; }

  class Locks;
  void reset_cell(Slot& slot) noexcept;
  // After a reload, a charge and the cell of its slot may belong to different versions of a limiter. If the
  // cell is older, resolve() converts it to the limiter of the charge. If the charge is older, resolve()
  // returns it with the limiter of the cell. The file key_table_versions.cpp implements the functions from
  // resolve() to convert_log().
  struct Resolved {
    Charge charge;
    bool uses_overflow_cell = false;  // true: the charge must go to the overflow cell, not to the slot
  };
  Resolved resolve(Slot& slot, const Charge& charge, base::TimePoint now) noexcept;
  // Returns true if the state in the slot and the charge are of the same generation: the rule's algorithm has
  // not changed between them (limit/table/limiter_versions.hpp).
  [[nodiscard]] bool is_same_generation(const Slot& slot, const Charge& charge) const;
  void convert(Slot& slot, const Limiter* from, const Limiter& to, RuleIndex rule,
               base::TimePoint now) noexcept;
  void convert_log(Slot& slot, const SlidingLog& from, const SlidingLog& to, RuleIndex rule,
                   base::TimePoint now) noexcept;
  ChargeCheck check(const Charge& charge, base::TimePoint now, Locks& locks);
  ChargeCheck check_overflow_cell(const Charge& charge, base::TimePoint now, Locks& locks);
  // Returns the outcome that the key's limiter would give this charge. Ignores the key's penalty. REQUIRES:
  // the caller holds the shard's lock.
  [[nodiscard]] Outcome peek_at_limiter(Shard& shard, const Charge& unresolved, base::TimePoint now);
  void check_log(const SlidingLog& limiter, const Charge& charge, base::TimePoint now, ChargeCheck& line);
  // Sets the outcome in `line` for a charge that only counts admitted requests (Charge::counted). `decider`:
  // the check of the charge that decides about the request.
  void check_counted(const Charge& charge, const ChargeCheck& decider, base::TimePoint now, ChargeCheck& line,
                     const Locks& locks) const;
  [[nodiscard]] LogStore::Ref make_room(Log& log, const Charge& charge, const ChargeCheck& line);
  // Both apply the key's penalty to the outcome of its limiter. Only check_and_note_violation() may
  // change a state: it notes a violation if the key's own state (not an overflow cell) refused the charge
  // while no penalty ran. REQUIRES: the charge has a penalty, and the caller holds the shard's lock.
  static void check_penalty(const Shard& shard, const Charge& charge, base::TimePoint now,
                            Outcome& outcome) noexcept;
  static void check_and_note_violation(Shard& shard, const Charge& charge, base::TimePoint now,
                                       Outcome& outcome) noexcept;
  void apply_penalty(const Charge& charge, base::TimePoint now, Violations violations,
                     Outcome& outcome) const noexcept;
  void finish(const Charge& charge, const ChargeCheck& line, bool charged);
  void add_log_entry(const SlidingLog& limiter, const Charge& charge, const ChargeCheck& line);
  // Tells change_charged_state() which state to change, and at what time.
  struct ChangeTarget {
    HybridTimestamp charged;  // the earliest timestamp that the charge can have
    bool overflow;            // true: the charge is in the overflow cell of its limiter ID
    base::TimePoint now;
    // Receives the timestamp of the change, if not null. A change of an overflow cell (the state that keys
    // without a slot share) has no timestamp.
    HybridTimestamp* timestamp;
  };
  // Changes the state that contains an earlier charge, under the lock of that state. Returns true if the
  // state has changed. Calls one of three functions:
  // * `change` for a cell or an overflow cell. Receives the cell, and returns the new one.
  // * `change_log` for a log. Returns true if it has changed the log.
  // * `on_evicted` if the key was evicted and has no state. change_charged_state() then returns true.
  //
  // `change` and `change_log` receive the charge converted to the cell's present limiter, which a reload may
  // have replaced. Calls none of the three and returns false if the key was reset after the charge, or if its
  // rule has another algorithm now.
  template <class Change, class ChangeLog, class OnEvicted>
  bool change_charged_state(const Charge& unresolved, const ChangeTarget& where, Change change,
                            ChangeLog change_log, OnEvicted on_evicted);
  template <class Change, class ChangeLog>
  bool change_charged_state(const Charge& unresolved, const ChangeTarget& where, Change change,
                            ChangeLog change_log) {
    return change_charged_state(unresolved, where, change, change_log, [](Shard&) {});
  }
  bool settle_log(const SlidingLog& limiter, RuleIndex rule, Log& log, const Settled& settled, Cost reserved);
  void settle_evicted(const Charge& charge, const Settled& settled, Shard& shard);
  // Both return the state with which a new slot of the charge's key starts. The caller of inherited() must
  // hold the lock of the overflow cells. The caller of fresh() must not, because fresh() may take the lock.
  [[nodiscard]] Cell inherited(const Charge& charge, base::TimePoint now) const noexcept;
  [[nodiscard]] Cell fresh(const Charge& charge, base::TimePoint now) const;

  // Reports a change of permits to the observer (key_table_permits.cpp). REQUIRES: the caller holds the
  // shard's lock.
  void report_permits(const Charge& charge, const Limiter& limiter, const Cell& before,
                      const Cell& after) const noexcept;

  [[nodiscard]] SavedKey saved(const Slot& slot, std::span<const SavedRule> rules) const;
  void fill(Slot& slot, RuleIndex rule, std::span<const LogEntry> entries, unsigned cost_bits) noexcept;
  // Divides the slots and the log chunks among the rules (limit/table/quota.hpp).
  void share_out();
  [[nodiscard]] std::vector<SharedCell> converted_overflow(RuleIndex index, const SavedRule& rule,
                                                           base::TimePoint now) const;

  const Shape shape;
  const Pages pages;
  LogStore logs;
  const std::unique_ptr<Shard[]> shards;
  Overflow overflow;
  LimiterVersions limiter_versions;
  Resets resets;
  PermitObserver permit_observer;  // changes only while no shard has `watched` set
  // The next hash bucket to sweep. The buckets of all shards are numbered consecutively. Grows without end,
  // so sweep() takes it modulo the number of buckets.
  std::atomic<std::uint64_t> next_bucket{0};
};

}  // namespace weir::limit
