#include "weir/limit/key_table.hpp"

#include "limit/overflow.hpp"
#include "limit/shard.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <new>

#include <boost/container/static_vector.hpp>
#include <sys/mman.h>

namespace weir::limit {

namespace {

constexpr std::size_t kMaxShards = 256;
constexpr std::size_t kMaxKeys = std::size_t{1} << 30;
// Below so many keys a shard, chance spreads keys too unevenly over shards.
constexpr std::size_t kKeysPerShard = 1024;

// A fifth more slots than keys. 256 shards share a million random keys to within 5 % (three standard
// deviations), so the fullest is at most 88 % full, where two choices and a move over find room for
// everybody.
constexpr std::size_t with_slack(std::size_t keys) noexcept {
  return keys + keys / 5;
}

constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

// Zeroed pages that become resident when they are first written.
class Pages {
 public:
  explicit Pages(std::size_t size) : size_(size) {
    void* at =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    at_ = static_cast<std::byte*>(at);
  }
  ~Pages() { munmap(at_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return at_ + offset; }

 private:
  std::byte* at_;
  std::size_t size_;
};

struct Shape {
  std::size_t shards;      // a power of two
  std::uint32_t buckets;   // in each shard
  std::size_t tags_size;   // in bytes, a shard
  std::size_t shard_size;  // tags and slots, in bytes

  explicit Shape(std::size_t keys) noexcept {
    shards = std::bit_floor(std::clamp(keys / kKeysPerShard, std::size_t{1}, kMaxShards));
    const std::size_t slots = round_up(with_slack(keys), shards) / shards;
    buckets =
        static_cast<std::uint32_t>(std::max(round_up(slots, kBucketSlots) / kBucketSlots, std::size_t{2}));
    tags_size = round_up(buckets * kBucketSlots * sizeof(Shard::Tag), kCacheLine);
    shard_size = round_up(tags_size + buckets * kBucketSlots * sizeof(Slot), kCacheLine);
  }
};

// One line of a bill while its locks are held.
struct Line {
  Slot* slot = nullptr;  // null: answered by the overflow cell
  Due due;               // what the pin on a slot found hides
  bool claimed = false;  // the slot is new
  Step step;
};

}  // namespace

struct KeyTable::Impl {
  explicit Impl(std::size_t max_keys)
      : shape(std::clamp(max_keys, std::size_t{1}, kMaxKeys)),
        pages(shape.shards * shape.shard_size),
        shards(std::make_unique<Shard[]>(shape.shards)) {
    for (std::size_t i = 0; i < shape.shards; ++i) {
      std::byte* at = pages.at(i * shape.shard_size);
      shards[i].open(reinterpret_cast<Shard::Tag*>(at), reinterpret_cast<Slot*>(at + shape.tags_size),
                     shape.buckets);
    }
  }

  [[nodiscard]] std::size_t index_of(const Key& key) const noexcept {
    return (key.hi >> 56) & (shape.shards - 1);
  }
  [[nodiscard]] Shard& shard_of(const Key& key) const noexcept { return shards[index_of(key)]; }

  class Locks;
  Line check(const Charge& charge, base::TimePoint now, Locks& locks);
  void finish(const Charge& charge, const Line& line, bool charged);

  const Shape shape;
  const Pages pages;
  const std::unique_ptr<Shard[]> shards;
  Overflow overflow;
  std::atomic<std::uint64_t> hand{0};  // the next bucket to be swept, counted through all shards
};

// The locks of a bill: its shards' in ascending order, then the overflow cells' if need be.
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

  void lock_overflow() {
    if (!overflow_) overflow_ = std::unique_lock(table_.overflow.mutex);
  }

 private:
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t word = 0; word < shards_.size(); ++word)
      for (std::uint64_t left = shards_[word]; left != 0; left &= left - 1)
        visit(table_.shards[word * 64 + static_cast<std::size_t>(std::countr_zero(left))]);
  }

  const Impl& table_;
  std::array<std::uint64_t, kMaxShards / 64> shards_{};
  std::unique_lock<std::mutex> overflow_;
};

// Finds the line's state, pins its slot and computes the step.
Line KeyTable::Impl::check(const Charge& charge, base::TimePoint now, Locks& locks) {
  Shard& shard = shard_of(charge.key);
  Line line;
  line.slot = shard.find(charge.key);
  if (line.slot != nullptr) {
    line.due = line.slot->due;
    line.slot->due = Due::pinned(line.due.rule());
  } else {
    line.slot = shard.claim(charge.key, charge.rule, now);
    line.claimed = line.slot != nullptr;
  }
  if (line.slot != nullptr) {
    line.step = step(*charge.limiter, line.slot->cell, now, charge.cost);
    return line;
  }
  locks.lock_overflow();
  line.step = step(*charge.limiter, overflow.cell(charge.rule, *charge.limiter), now, charge.cost);
  line.step.outcome.overflow = true;
  return line;
}

void KeyTable::Impl::finish(const Charge& charge, const Line& line, bool charged) {
  Shard& shard = shard_of(charge.key);
  if (line.slot == nullptr) {
    if (charged) overflow.settle(charge.rule, *charge.limiter, line.step.next);
  } else if (charged) {
    shard.settle(*line.slot, line.step.next, Due(line.step.drained_at, charge.rule));
  } else if (line.claimed) {
    shard.release(*line.slot);
  } else {
    line.slot->due = line.due;
  }
}

KeyTable::KeyTable(std::size_t max_keys) : impl_(std::make_unique<Impl>(max_keys)) {}
KeyTable::~KeyTable() = default;

bool KeyTable::charge(std::span<const Charge> charges, base::TimePoint now, std::span<Outcome> outcomes) {
  assert(charges.size() == outcomes.size() && charges.size() <= kMaxCharges);
  Impl::Locks locks(*impl_, charges);
  boost::container::static_vector<Line, kMaxCharges> lines;
  bool admitted = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Line& line = lines.emplace_back(impl_->check(charges[i], now, locks));
    outcomes[i] = line.step.outcome;
    if (charges[i].enforced && !line.step.outcome.allowed) admitted = false;
  }
  for (std::size_t i = 0; i < charges.size(); ++i)
    impl_->finish(charges[i], lines[i], admitted && lines[i].step.outcome.allowed);
  return admitted;
}

void KeyTable::refund(std::span<const Charge> charges, base::TimePoint charged_at,
                      std::span<const Outcome> outcomes) {
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (outcomes[i].allowed) refund(charges[i], charged_at + outcomes[i].delay, outcomes[i].overflow);
}

bool KeyTable::refund(const Charge& charge, base::TimePoint departure, bool overflow) {
  const Limiter& limiter = *charge.limiter;
  if (overflow) {
    const std::lock_guard lock(impl_->overflow.mutex);
    const Cell cell = impl_->overflow.cell(charge.rule, limiter);
    const Cell back = limit::refund(limiter, cell, departure, charge.cost);
    impl_->overflow.put(charge.rule, limiter, back);
    return back != cell;
  }
  Shard& shard = impl_->shard_of(charge.key);
  const std::lock_guard lock(shard.mutex);
  Slot* slot = shard.find(charge.key);
  if (slot == nullptr) return true;  // drained and forgotten: it is as good as fresh already
  const Cell cell = limit::refund(limiter, slot->cell, departure, charge.cost);
  const bool given_back = cell != slot->cell;
  shard.settle(*slot, cell, Due(drained_at(limiter, cell), charge.rule));
  return given_back;
}

Outcome KeyTable::peek(const Charge& charge, base::TimePoint now) const {
  const Shard& shard = impl_->shard_of(charge.key);
  const std::lock_guard lock(shard.mutex);
  const Slot* slot = shard.find(charge.key);
  if (slot != nullptr) return step(*charge.limiter, slot->cell, now, charge.cost).outcome;
  if (shard.has_room(charge.key, now)) return step(*charge.limiter, Cell{}, now, charge.cost).outcome;
  const std::lock_guard last(impl_->overflow.mutex);
  auto outcome =
      step(*charge.limiter, impl_->overflow.cell(charge.rule, *charge.limiter), now, charge.cost).outcome;
  outcome.overflow = true;
  return outcome;
}

std::size_t KeyTable::sweep(base::TimePoint now, std::size_t buckets) {
  const std::uint64_t all = impl_->shape.shards * impl_->shape.buckets;
  const std::uint64_t count = std::min<std::uint64_t>(buckets, all);
  const std::uint64_t first = impl_->hand.fetch_add(count, std::memory_order_relaxed);
  std::size_t forgotten = 0;
  for (std::uint64_t i = first; i != first + count; ++i) {
    const std::uint64_t bucket = i % all;
    Shard& shard = impl_->shards[bucket / impl_->shape.buckets];
    const std::lock_guard lock(shard.mutex);  // for one bucket: no request waits for more
    forgotten += shard.sweep(static_cast<std::uint32_t>(bucket % impl_->shape.buckets), now);
  }
  return forgotten;
}

KeyTable::Stats KeyTable::stats() const {
  Stats stats;
  stats.slots = impl_->shape.shards * impl_->shape.buckets * kBucketSlots;
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    const Shard& shard = impl_->shards[i];
    const std::lock_guard lock(shard.mutex);
    for (std::size_t rule = 0; rule < kMaxRules; ++rule)
      stats.keys_by_rule[rule] += shard.keys_by_rule()[rule];
  }
  for (const auto keys : stats.keys_by_rule) stats.keys += keys;
  const std::lock_guard lock(impl_->overflow.mutex);
  stats.overflowed = impl_->overflow.charges();
  return stats;
}

}  // namespace weir::limit
