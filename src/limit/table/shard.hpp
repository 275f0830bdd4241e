// One shard of the key table: buckets of eight slots and the mutex that guards them.
//
//   tags   | 8 × 16-bit fingerprint | 8 × … |         one bucket a 16-byte line, four to a cache line; 0 =
//   empty slots  | 8 × 40 bytes           | 8 × … |         40 = key 16 | cell 16 | drained_at, rule 8
//
// A probe reads a key's two lines of tags and then, nearly always, the one slot it looks for. Shard, buckets
// and fingerprint come from different bits of the digest.
//
// Where a newcomer goes: the emptier of its two buckets (two-choice hashing: Azar, Broder, Karlin and Upfal,
// "Balanced allocations", 1994); else the place of a drained key there; else that of a neighbour which has
// room in its own other bucket and moves over (one step of cuckoo hashing: Pagh and Rodler, 2001). The last
// lets a shard fill to over nine tenths before any key finds no room.
//
// Owned by the key table. Every member but `prefetch` and `mutex` REQUIRES that the caller holds `mutex`.
#pragma once

#include "limit/log/log_store.hpp"
#include "limit/table/quota.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/turn.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weir::limit {

// drained_at, whether the cell is a log, and the rule share a word: 55 bits of µs reach to the year 3111, and
// kMaxRules fits the last eight.
class Due {
 public:
  Due() = default;
  Due(base::TimePoint drained_at, RuleIndex rule, bool is_log) noexcept
      : word_((clamped(drained_at) << kTimeAt) | (is_log ? kLog : 0) | static_cast<std::uint8_t>(rule)) {}
  // A slot that a bill in progress points at: neither drained nor to be moved.
  [[nodiscard]] static Due pinned(RuleIndex rule) noexcept {
    return Due((kPinned << kTimeAt) | static_cast<std::uint8_t>(rule));
  }

  [[nodiscard]] RuleIndex rule() const noexcept { return static_cast<std::uint8_t>(word_); }
  // The cell may name chunks of the log store, to be given back with the slot.
  [[nodiscard]] bool is_log() const noexcept { return (word_ & kLog) != 0; }
  // At the latest the last instant of the range, which stands for "never".
  [[nodiscard]] base::TimePoint drained_at() const noexcept {
    return base::TimePoint(base::Duration(static_cast<base::Duration::rep>(word_ >> kTimeAt)));
  }
  [[nodiscard]] bool never_drains() const noexcept { return (word_ >> kTimeAt) >= kPinned - 1; }
  [[nodiscard]] bool is_pinned() const noexcept { return (word_ >> kTimeAt) == kPinned; }
  [[nodiscard]] bool drained(base::TimePoint now) const noexcept {
    return !is_pinned() && (word_ >> kTimeAt) <= clamped(now);
  }

 private:
  static constexpr unsigned kTimeAt = 9;
  static constexpr std::uint64_t kLog = std::uint64_t{1} << 8;
  static constexpr std::uint64_t kPinned = (std::uint64_t{1} << 55) - 1;
  explicit Due(std::uint64_t word) noexcept : word_(word) {}
  // An instant beyond the range is kept as the last one within it, which no clock reaches.
  static std::uint64_t clamped(base::TimePoint at) noexcept {
    const auto micros = static_cast<std::uint64_t>(at.time_since_epoch().count());
    return micros < kPinned ? micros : kPinned - 1;
  }
  std::uint64_t word_ = 0;
};
static_assert(kMaxRules <= 256);

struct Slot {
  Key key;
  Cell cell;
  Due due;
};
static_assert(sizeof(Slot) == 40);

inline constexpr std::size_t kBucketSlots = 8;
inline constexpr std::size_t kCacheLine = 64;

class alignas(kCacheLine) Shard {
 public:
  using Tag = std::uint16_t;

  // REQUIRES buckets ≥ 1, and zeroed memory for `buckets` × kBucketSlots of both that outlives the shard, as
  // `logs` does.
  void open(Tag* tags, Slot* slots, std::uint32_t buckets, LogStore& logs) noexcept;

  // Asks the memory for the tags of `key` ahead of their use. May be called without the mutex.
  void prefetch(const Key& key) const noexcept;

  // The slot of `key`, or null.
  [[nodiscard]] Slot* find(const Key& key) const noexcept;

  // Whether a `key` that has no slot could get one. May forget drained keys.
  [[nodiscard]] bool has_room(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
    return within_share(key, rule, now) && vacancy(key, now).slot != nullptr;
  }

  // A slot for a `key` that has none, its cell fresh, pinned; null where all that it could have are taken by
  // live keys, or its rule has its share of the shard. Other slots may move, pinned ones never. What is asked
  // of it next is asked at forgotten_at() at the earliest: before that instant the key may have been another
  // than a fresh one.
  [[nodiscard]] Slot* claim(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
    return within_share(key, rule, now) ? claim_beyond_share(key, rule, now) : nullptr;
  }
  // The same for a key that comes back: its state is not lost because a reload made its rule's share smaller.
  [[nodiscard]] Slot* claim_beyond_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept;

  // Stores the state of a charged key.
  void settle(Slot& slot, const Cell& cell, Due due) noexcept;

  // Empties a slot, and gives back the chunks of its log.
  void release(Slot& slot) noexcept;

  // Empties the drained slots of a bucket; returns how many.
  std::size_t sweep(std::uint32_t bucket, base::TimePoint now) noexcept;

  // The latest instant at which a key was drained and forgotten. Workers read the clock before they lock, so
  // who comes next may be of an earlier one.
  [[nodiscard]] base::TimePoint forgotten_at() const noexcept { return forgotten_at_; }

  // The turn of the last key that was reset (limit/table/resets.hpp); 0: none was.
  [[nodiscard]] Turn last_reset() const noexcept { return last_reset_; }
  void note_reset() noexcept { last_reset_ = turn; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < std::size_t{buckets_} * kBucketSlots; ++i)
      if (tags_[i] != 0) visit(slots_[i]);
  }

  [[nodiscard]] std::uint32_t buckets() const noexcept { return buckets_; }
  [[nodiscard]] const std::array<std::uint32_t, kMaxRules>& keys_by_rule() const noexcept {
    return quota.by_rule();
  }

  mutable std::mutex mutex;
  Turn turn = 0;         // of the last change
  bool watched = false;  // somebody is told what is held (KeyTable::watch_held)
  Quota quota;           // of its slots

 private:
  struct Homes {  // where a key may live
    std::uint32_t first, second;
    Tag tag;
  };
  struct Vacancy {
    Slot* slot = nullptr;     // to be taken; null: no room
    Slot* move_to = nullptr;  // where its live occupant moves first; null: it is empty or drained
  };

  [[nodiscard]] Homes homes(const Key& key) const noexcept;
  [[nodiscard]] Slot* find_in(std::uint32_t bucket, Tag tag, const Key& key) const noexcept;
  [[nodiscard]] Slot* empty_in(std::uint32_t bucket) const noexcept;
  [[nodiscard]] Slot* drained_in(std::uint32_t bucket, base::TimePoint now) const noexcept;
  [[nodiscard]] Vacancy movable_in(std::uint32_t bucket) const noexcept;
  [[nodiscard]] Vacancy vacancy(const Key& key, base::TimePoint now) const noexcept;
  [[nodiscard]] bool within_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept;
  [[nodiscard]] Tag& tag_of(const Slot& slot) const noexcept { return tags_[&slot - slots_]; }

  Tag* tags_ = nullptr;
  Slot* slots_ = nullptr;
  LogStore* logs_ = nullptr;
  base::TimePoint forgotten_at_;
  Turn last_reset_ = 0;
  std::uint32_t buckets_ = 0;
  std::uint32_t hand_ = 0;  // the next bucket to be swept for a rule that has its share
};

}  // namespace weir::limit
