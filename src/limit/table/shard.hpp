// One shard of the key table: buckets of eight slots, and the mutex that guards them.
//
//   tags   | 8 × 16-bit fingerprint | 8 × … |    a bucket has 16 bytes, four fit a cache line; 0 = empty
//   slots  | 8 × 40 bytes           | 8 × … |    40 = key 16 | cell 16 | drained_at, rule 8
//
// A lookup reads the tags of a key's two buckets and then, nearly always, one slot. Shard, buckets and
// fingerprint are chosen by different bits of the key's digest.
//
// A new key takes the first of these that exists:
// * an empty slot in the emptier of its two buckets (two-choice hashing: Azar, Broder, Karlin and Upfal,
//   "Balanced allocations", 1994);
// * the slot of a drained key in either bucket;
// * the slot of a key that can move from these buckets to its own second bucket (one step of cuckoo hashing:
//   Pagh and Rodler, 2001).
// With these moves a shard is over nine tenths full before a key finds no slot.
//
// Owned by the key table. REQUIRES for every member but `prefetch` and `mutex`: the caller holds `mutex`.
#pragma once

#include "limit/log/log_store.hpp"
#include "limit/table/penalty_table.hpp"
#include "limit/table/quota.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weir::limit {

// One word of a slot: drained_at (52 bits), whether the cell is a log (1 bit), and the RuleIndex (11 bits).
//
// The time is exact, in µs, until the year 2111. Later times are rounded up to units of 512 µs, so that no
// key is evicted too early. The latest time that fits is in 2682. Times so late occur if a key is in debt for
// years (limit/settle.hpp).
class SlotInfo {
 public:
  SlotInfo() = default;
  SlotInfo(base::TimePoint drained_at, RuleIndex rule, bool is_log) noexcept
      : word_((number_of(drained_at, kCoarse - 1) << kTimeAt) | (is_log ? kLog : 0) | rule) {}
  // Returns a value that marks (pins) a slot while weir checks a request that uses the slot. A pinned slot
  // must not be evicted or moved.
  [[nodiscard]] static SlotInfo pinned(RuleIndex rule) noexcept {
    return SlotInfo((kPinned << kTimeAt) | rule);
  }

  [[nodiscard]] RuleIndex rule() const noexcept { return static_cast<RuleIndex>(word_ & kRule); }
  // Returns true if the cell belongs to a log. The cell of a log may refer to chunks of the log store, which
  // release() returns to the store.
  [[nodiscard]] bool is_log() const noexcept { return (word_ & kLog) != 0; }
  // Returns the instant from which on the slot may be evicted. For a cell (state) that never becomes fresh
  // again, returns the last instant that a SlotInfo can store.
  [[nodiscard]] base::TimePoint evictable_at() const noexcept {
    const auto number = word_ >> kTimeAt;
    const auto micros = number < kExact ? number : kExact + (number - kExact) * kCoarse;
    return base::TimePoint(base::Duration(static_cast<base::Duration::rep>(micros)));
  }
  [[nodiscard]] bool never_drains() const noexcept { return (word_ >> kTimeAt) >= kPinned - 1; }
  [[nodiscard]] bool is_pinned() const noexcept { return (word_ >> kTimeAt) == kPinned; }
  [[nodiscard]] bool evictable(base::TimePoint now) const noexcept {
    return !is_pinned() && (word_ >> kTimeAt) <= number_of(now, 0);
  }

 private:
  static constexpr unsigned kTimeAt = 12;
  static constexpr std::uint64_t kLog = std::uint64_t{1} << 11;
  static constexpr std::uint64_t kRule = kLog - 1;
  static constexpr std::uint64_t kPinned = (std::uint64_t{1} << 52) - 1;
  static constexpr std::uint64_t kExact = (std::uint64_t{1} << 52) - (std::uint64_t{1} << 45);  // µs
  static constexpr std::uint64_t kCoarse = 512;                                                 // µs
  static_assert(kMaxRules == kRule + 1);
  explicit SlotInfo(std::uint64_t word) noexcept : word_(word) {}
  // Returns the number that stores an instant. Below kExact µs, this is the instant in µs. From there on,
  // each unit is kCoarse µs. `more`: 0 rounds down to such a unit, kCoarse - 1 rounds up. If the number needs
  // more than 52 bits, returns kPinned - 1, which no clock reaches.
  static std::uint64_t number_of(base::TimePoint at, std::uint64_t more) noexcept {
    const auto micros = static_cast<std::uint64_t>(at.time_since_epoch().count());
    if (micros < kExact) [[likely]]
      return micros;
    return std::min(kExact + (micros - kExact + more) / kCoarse, kPinned - 1);
  }
  std::uint64_t word_ = 0;
};

struct Slot {
  Key key;
  Cell cell;
  SlotInfo due;
};
static_assert(sizeof(Slot) == 40);

inline constexpr std::size_t kBucketSlots = 8;
inline constexpr std::size_t kCacheLine = 64;

class alignas(kCacheLine) Shard {
 public:
  using Tag = std::uint16_t;

  // Must be called once, before all other members. REQUIRES: buckets ≥ 1; zeroed memory for `buckets` ×
  // kBucketSlots tags and slots. That memory and `logs` must outlive the shard.
  void open(Tag* tags, Slot* slots, std::uint32_t buckets, LogStore& logs) noexcept;

  // Prefetches the tags of `key`. May be called without the mutex.
  void prefetch(const Key& key) const noexcept;

  // Returns the slot of `key`, or null.
  [[nodiscard]] Slot* find(const Key& key) const noexcept;

  // Returns true if `key`, which has no slot, could get a slot. May evict drained keys.
  [[nodiscard]] bool has_room(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
    return within_share(key, rule, now) && vacancy(key, now).slot != nullptr;
  }

  // Returns a fresh, pinned slot for `key`, which must not have a slot. Returns null if no slot is free for
  // the key, or if its rule has used up its share of the shard. Keys in unpinned slots may move to other
  // slots. This call may evict other keys. The shard may also have evicted `key` itself, as late as
  // forgotten_at(), so the caller must not compute the key's next step for an earlier time.
  [[nodiscard]] Slot* claim(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
    return within_share(key, rule, now) ? claim_beyond_share(key, rule, now) : nullptr;
  }
  // Returns a slot like claim(), even if the rule has used up its share. Used for restored keys, whose state
  // must not be lost.
  [[nodiscard]] Slot* claim_beyond_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept;

  // Stores the new state of a key and unpins its slot.
  void settle(Slot& slot, const Cell& cell, SlotInfo due) noexcept;

  // Empties a slot and returns the chunks of its log.
  void release(Slot& slot) noexcept;

  // Evicts the drained keys of a bucket. Returns the number of evicted keys.
  std::size_t sweep(std::uint32_t bucket, base::TimePoint now) noexcept;

  // Returns the latest `now` at which this shard evicted a key. A later charge may have an earlier time,
  // because workers read the clock before they lock.
  [[nodiscard]] base::TimePoint forgotten_at() const noexcept { return forgotten_at_; }

  // Returns the timestamp of the last reset of any key of this shard (limit/table/resets.hpp); 0: none.
  [[nodiscard]] HybridTimestamp last_reset() const noexcept { return last_reset_; }
  void note_reset() noexcept { last_reset_ = timestamp; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < std::size_t{buckets_} * kBucketSlots; ++i)
      if (tags_[i] != 0) visit(slots_[i]);
  }

  [[nodiscard]] std::uint32_t buckets() const noexcept { return buckets_; }
  [[nodiscard]] std::span<const std::uint32_t> keys_by_rule() const noexcept { return quota.by_rule(); }

  mutable std::mutex mutex;
  HybridTimestamp timestamp = 0;  // the timestamp of the last change in this shard
  bool watched = false;    // true: changes of permits are reported to the observer (KeyTable::watch_permits)
  Quota quota;             // divides the slots among the rules
  PenaltyTable penalties;  // the penalties of this shard's keys, with or without a slot

 private:
  struct BucketPair {  // the two buckets and the tag that a key's digest selects
    std::uint32_t first, second;
    Tag tag;
  };
  struct Vacancy {
    Slot* slot = nullptr;  // the slot to take; null if no slot can be taken
    // The slot to which the live key in `slot` must move first; null if `slot` is empty or drained.
    Slot* move_to = nullptr;
  };

  [[nodiscard]] BucketPair buckets_of(const Key& key) const noexcept;
  [[nodiscard]] Slot* find_in(std::uint32_t bucket, Tag tag, const Key& key) const noexcept;
  [[nodiscard]] Slot* empty_in(std::uint32_t bucket) const noexcept;
  [[nodiscard]] Slot* evictable_in(std::uint32_t bucket, base::TimePoint now) const noexcept;
  [[nodiscard]] Vacancy movable_in(std::uint32_t bucket) const noexcept;
  [[nodiscard]] Vacancy vacancy(const Key& key, base::TimePoint now) const noexcept;
  [[nodiscard]] bool within_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept;
  [[nodiscard]] Tag& tag_of(const Slot& slot) const noexcept { return tags_[&slot - slots_]; }

  Tag* tags_ = nullptr;
  Slot* slots_ = nullptr;
  LogStore* logs_ = nullptr;
  base::TimePoint forgotten_at_;
  HybridTimestamp last_reset_ = 0;
  std::uint32_t buckets_ = 0;
  std::uint32_t next_bucket_ = 0;  // the next bucket to sweep when a rule has used up its share
};

}  // namespace weir::limit
