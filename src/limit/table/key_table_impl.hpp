// What a key table consists of, for the sources that it is written in.
#pragma once

#include "limit/algorithms/arithmetic.hpp"
#include "limit/log/log.hpp"
#include "limit/table/overflow.hpp"
#include "limit/table/readings.hpp"
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
  // One line of a bill while its locks are held.
  struct Line {
    Slot* slot = nullptr;  // null: answered by the overflow cell
    // Whose numbers the slot's cell is in: the charge's, or newer ones of its rule.
    const Limiter* limiter = nullptr;
    RuleIndex rule = 0;
    Due due;                  // what the pin on a slot found hides
    bool claimed = false;     // the slot is new
    bool inherits = false;    // and began with what the ledger's overflow cell holds
    Step step;                // of a log, `next` is not used
    std::uint64_t mark = 0;   // of a log: where the cost is entered
    LogStore::Ref spare = 0;  // of a log: the chunk that the entry needs
    Cost most = 0;            // of a log that counts beyond its limit: what it keeps; else 0
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
  // These four in key_table_readings.cpp. A charge as the slot's cell takes it, after a reload; the cell may
  // move on.
  struct Met {
    Charge charge;
    bool apart = false;  // it is not to be charged there
  };
  Met meet(Slot& slot, const Charge& charge, base::TimePoint now) noexcept;
  // Whether what was charged under another RuleIndex than the slot's may stand in its cell.
  [[nodiscard]] bool lives_on(const Slot& slot, const Charge& charge) const;
  void carry(Slot& slot, const Limiter* from, const Limiter& to, RuleIndex rule,
             base::TimePoint now) noexcept;
  void carry_log(Slot& slot, const SlidingLog& from, const SlidingLog& to, RuleIndex rule,
                 base::TimePoint now) noexcept;
  Line check(const Charge& charge, base::TimePoint now, Locks& locks);
  Line check_shared(const Charge& charge, base::TimePoint now, Locks& locks);
  void check_log(const SlidingLog& limiter, const Charge& charge, base::TimePoint now, Line& line);
  // Of a line that only counts what another has decided.
  void follow(const Charge& charge, const Line& decider, base::TimePoint now, Line& line) const;
  [[nodiscard]] LogStore::Ref make_room(Log& log, const Charge& charge, const Line& line);
  void finish(const Charge& charge, const Line& line, bool charged);
  void enter(const SlidingLog& limiter, const Charge& charge, const Line& line);
  // Changes the cell of a charged key, or the shared one that answered for it; of a log, its cell or ring.
  // `anew`: what to do, under the shard's lock, where the key was forgotten: drained, it is as good as fresh.
  // `change` and `change_log` are given the charge as the cell takes it: under other numbers after a reload.
  struct Where {
    Turn charged;   // the first that it may have been charged in
    bool overflow;  // in the cell that the newcomers of a ledger share
    base::TimePoint now;
    Turn* turn;  // where to note its turn; null: nowhere. Shared cells have none
  };
  template <class Change, class ChangeLog, class Anew>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log, Anew anew);
  template <class Change, class ChangeLog>
  bool amend(const Charge& asked, const Where& where, Change change, ChangeLog change_log) {
    return amend(asked, where, change, change_log, [](Shard&) {});
  }
  bool settle_log(const SlidingLog& limiter, RuleIndex rule, Log& log, const Settled& settled, Cost reserved);
  void settle_anew(const Charge& charge, const Settled& settled, Shard& shard);
  // What a key without a slot stands at, as far as the table knows. REQUIRES the overflow cells' lock.
  [[nodiscard]] Cell inherited(const Charge& charge, base::TimePoint now) const noexcept;
  [[nodiscard]] Cell fresh(const Charge& charge, base::TimePoint now) const;

  // Tells whoever watches what a change of a cell comes to (key_table_held.cpp). REQUIRES the shard's lock.
  void tell_held(const Charge& charge, const Limiter& limiter, const Cell& before,
                 const Cell& after) const noexcept;

  [[nodiscard]] SavedKey saved(const Slot& slot, std::span<const SavedRule> rules) const;
  void fill(Slot& slot, RuleIndex rule, std::span<const LogEntry> entries, unsigned cost_bits) noexcept;
  // Gives each rule that there is its part (limit/table/quota.hpp).
  void share_out();

  const Shape shape;
  const Pages pages;
  LogStore logs;
  const std::unique_ptr<Shard[]> shards;
  Overflow overflow;
  Readings readings;
  Resets resets;
  HeldSink see_held;                   // changes only while no shard is watched
  std::atomic<std::uint64_t> hand{0};  // the next bucket to be swept, counted through all shards
};

}  // namespace weir::limit
