#include "limit/table/shard.hpp"

#include "limit/log/log.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir::limit {

namespace {

// The set of the tags in a bucket that equal a given tag. Tag i of the bucket is bit 16 × (i mod 4) + 15 of
// word i / 4. Computed by arithmetic on whole words ("SIMD within a register"; Warren, Hacker's Delight,
// §6-1), which every CPU can do.
struct Lanes {
  std::array<std::uint64_t, 2> words;

  static Lanes equal(const Shard::Tag* tags, Shard::Tag tag) noexcept {
    constexpr std::uint64_t kOnes = 0x0001'0001'0001'0001;
    constexpr std::uint64_t kLow = 0x7fff'7fff'7fff'7fff;
    Lanes lanes{};
    std::memcpy(lanes.words.data(), tags, sizeof lanes.words);
    for (auto& word : lanes.words) {
      const std::uint64_t differing = word ^ (kOnes * tag);
      word = ~(((differing & kLow) + kLow) | differing | kLow);
    }
    return lanes;
  }
  [[nodiscard]] bool none() const noexcept { return (words[0] | words[1]) == 0; }
  [[nodiscard]] int count() const noexcept { return std::popcount(words[0]) + std::popcount(words[1]); }
  // Returns the index of the first tag in the set. REQUIRES: !none().
  [[nodiscard]] std::size_t first() const noexcept {
    return static_cast<std::size_t>(words[0] != 0 ? std::countr_zero(words[0]) / 16
                                                  : 4 + std::countr_zero(words[1]) / 16);
  }
  void drop_first() noexcept {
    auto& word = words[0] != 0 ? words[0] : words[1];
    word &= word - 1;
  }
};

static_assert(std::endian::native == std::endian::little, "the first lane is the lowest of its word");

constexpr std::size_t start_of(std::uint32_t bucket) noexcept {
  return std::size_t{bucket} * kBucketSlots;
}

// Maps 32 random bits to 0 … n - 1 (Lemire, "Fast random integer generation in an interval", 2019).
constexpr std::uint32_t scaled(std::uint64_t bits, std::uint32_t n) noexcept {
  return static_cast<std::uint32_t>(((bits & 0xffff'ffff) * n) >> 32);
}

}  // namespace

void Shard::open(Tag* tags, Slot* slots, std::uint32_t buckets, LogStore& logs) noexcept {
  tags_ = tags;
  logs_ = &logs;
  slots_ = slots;
  buckets_ = buckets;
}

// key.lo selects both buckets, and the low bits of key.hi select the tag. The high bits of key.hi select the
// shard.
Shard::BucketPair Shard::buckets_of(const Key& key) const noexcept {
  const auto tag = static_cast<Tag>(key.hi);
  return {scaled(key.lo, buckets_), scaled(key.lo >> 32, buckets_), tag != 0 ? tag : Tag{1}};
}

void Shard::prefetch(const Key& key) const noexcept {
  const BucketPair home = buckets_of(key);
  __builtin_prefetch(tags_ + start_of(home.first));
  __builtin_prefetch(tags_ + start_of(home.second));
}

Slot* Shard::find_in(std::uint32_t bucket, Tag tag, const Key& key) const noexcept {
  for (auto lanes = Lanes::equal(tags_ + start_of(bucket), tag); !lanes.none(); lanes.drop_first()) {
    Slot& slot = slots_[start_of(bucket) + lanes.first()];
    if (slot.key == key) return &slot;
  }
  return nullptr;
}

Slot* Shard::find(const Key& key) const noexcept {
  const BucketPair home = buckets_of(key);
  Slot* slot = find_in(home.first, home.tag, key);
  return slot != nullptr ? slot : find_in(home.second, home.tag, key);
}

Slot* Shard::empty_in(std::uint32_t bucket) const noexcept {
  const auto empty = Lanes::equal(tags_ + start_of(bucket), 0);
  return empty.none() ? nullptr : slots_ + start_of(bucket) + empty.first();
}

Slot* Shard::evictable_in(std::uint32_t bucket, base::TimePoint now) const noexcept {
  for (Slot* slot = slots_ + start_of(bucket); slot != slots_ + start_of(bucket) + kBucketSlots; ++slot)
    if (tag_of(*slot) != 0 && slot->due.evictable(now)) return slot;
  return nullptr;
}

// Returns a slot of this bucket whose key can move to an empty slot in that key's other bucket. Does not look
// for drained (evictable) keys in the other buckets. During an attack the table is full, and that search
// would read 128 slots for each new key. REQUIRES: the bucket is full.
Shard::Vacancy Shard::movable_in(std::uint32_t bucket) const noexcept {
  Slot* const slots = slots_ + start_of(bucket);
  std::array<std::uint32_t, kBucketSlots> others;
  // Prefetches the other buckets of all eight keys before it reads the first of these buckets, because they
  // are far apart in memory.
  for (std::size_t i = 0; i < kBucketSlots; ++i) {
    const BucketPair home = buckets_of(slots[i].key);
    others[i] = home.first == bucket ? home.second : home.first;
    __builtin_prefetch(tags_ + start_of(others[i]));
  }
  for (std::size_t i = 0; i < kBucketSlots; ++i) {
    if (slots[i].due.is_pinned()) continue;
    if (Slot* free = empty_in(others[i])) return {&slots[i], free};
  }
  return {};
}

Shard::Vacancy Shard::vacancy(const Key& key, base::TimePoint now) const noexcept {
  const BucketPair home = buckets_of(key);
  const auto first = Lanes::equal(tags_ + start_of(home.first), 0).count();
  const auto second = Lanes::equal(tags_ + start_of(home.second), 0).count();
  if (first + second > 0) return {empty_in(first >= second ? home.first : home.second)};
  // Both buckets are full, so all their slots are read below. Prefetches them, because during an attack no
  // cache holds these slots.
  for (const auto bucket : {home.first, home.second})
    for (std::size_t at = 0; at < kBucketSlots * sizeof(Slot); at += kCacheLine)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(slots_ + start_of(bucket)) + at);
  if (Slot* slot = evictable_in(home.first, now)) return {slot};
  if (Slot* slot = evictable_in(home.second, now)) return {slot};
  if (const auto movable = movable_in(home.first); movable.slot != nullptr) return movable;
  return movable_in(home.second);
}

// Returns true if the rule may take another slot. Its share includes keys whose state is fresh again, but
// which no sweep has evicted yet. So if the share is used up, sweeps the key's two buckets first, and then a
// few other buckets of the shard.
bool Shard::within_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
  constexpr int kMoreBuckets = 4;
  if (quota.may_take(rule)) return true;
  const BucketPair home = buckets_of(key);
  (void)sweep(home.first, now);
  (void)sweep(home.second, now);
  for (int more = 0; more < kMoreBuckets && !quota.may_take(rule); ++more) {
    next_bucket_ = next_bucket_ + 1 < buckets_ ? next_bucket_ + 1 : 0;
    (void)sweep(next_bucket_, now);
  }
  return quota.may_take(rule);
}

Slot* Shard::claim_beyond_share(const Key& key, RuleIndex rule, base::TimePoint now) noexcept {
  const auto [slot, move_to] = vacancy(key, now);
  if (slot == nullptr) return nullptr;
  if (move_to != nullptr) {
    *move_to = *slot;
    tag_of(*move_to) = tag_of(*slot);
  } else if (tag_of(*slot) != 0) {
    release(*slot);
    forgotten_at_ = std::max(forgotten_at_, now);
  }
  *slot = {key, Cell{}, SlotInfo::pinned(rule)};
  tag_of(*slot) = buckets_of(key).tag;
  quota.take(rule);
  return slot;
}

void Shard::settle(Slot& slot, const Cell& cell, SlotInfo due) noexcept {
  if (slot.due.rule() != due.rule()) {  // a reload has given the rule another RuleIndex
    quota.give_back(slot.due.rule());
    quota.take(due.rule());
  }
  slot.cell = cell;
  slot.due = due;
}

void Shard::release(Slot& slot) noexcept {
  if (slot.due.is_log()) logs_->give_back_ring(LogReader::tail_of(slot.cell));
  quota.give_back(slot.due.rule());
  tag_of(slot) = 0;
}

std::size_t Shard::sweep(std::uint32_t bucket, base::TimePoint now) noexcept {
  std::size_t forgotten = 0;
  if (Lanes::equal(tags_ + start_of(bucket), 0).count() == kBucketSlots) return 0;
  while (Slot* slot = evictable_in(bucket, now)) {
    release(*slot);
    ++forgotten;
  }
  if (forgotten != 0) forgotten_at_ = std::max(forgotten_at_, now);
  return forgotten;
}

}  // namespace weir::limit
