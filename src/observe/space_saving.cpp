#include "weir/observe/space_saving.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace weir::observe {

namespace {

// Returns the size of the index for this many counters. The index is so sparse that most searches read only
// one entry. Reading a second one would cost a mispredicted branch.
std::size_t index_size(std::size_t capacity) noexcept {
  return std::bit_ceil(4 * capacity);
}

}  // namespace

SpaceSaving::SpaceSaving(std::size_t capacity)
    : capacity_(capacity), mask_(index_size(capacity) - 1), index_(index_size(capacity), kEmptyEntry) {
  assert(capacity >= 1 && capacity <= kMost);
  counters_.reserve(capacity);
  smallest_.reserve(capacity);
}

std::size_t SpaceSaving::size_of(std::size_t capacity) noexcept {
  return sizeof(SpaceSaving) + index_size(capacity) * sizeof(Index) +
         capacity * (sizeof(Counter) + sizeof(Index));
}

void SpaceSaving::clear() noexcept {
  std::fill(index_.begin(), index_.end(), kEmptyEntry);
  counters_.clear();
  smallest_.clear();
  total_ = 0;
}

std::uint64_t SpaceSaving::floor() const noexcept {
  if (counters_.size() < capacity_) return 0;
  return std::min_element(counters_.begin(), counters_.end(),
                          [](const Counter& a, const Counter& b) { return a.count < b.count; })
      ->count;
}

// Returns an unused counter if there is one, otherwise the counter with the smallest count.
auto SpaceSaving::take_over(const base::Digest128& client) -> Counter& {
  if (counters_.size() < capacity_) {
    counters_.push_back({.client = client});
    enter(static_cast<Index>(counters_.size() - 1));
    return counters_.back();
  }
  const auto index = smallest();
  auto& counter = counters_[index];
  remove(index);
  counter.client = client;
  counter.error = counter.count;
  enter(index);
  return counter;
}

// Returns a counter with the smallest count. `smallest_` has the candidates: the counters that had the
// smallest count at the last full search. Counts only grow, so a candidate that still has smallest_count_ has
// the smallest count of all.
auto SpaceSaving::smallest() noexcept -> Index {
  while (!smallest_.empty()) {
    const auto index = smallest_.back();
    smallest_.pop_back();
    if (counters_[index].count == smallest_count_) return index;
  }
  smallest_count_ = ~std::uint64_t{0};
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const auto count = counters_[i].count;
    if (count > smallest_count_) continue;
    if (count < smallest_count_) smallest_.clear();
    smallest_count_ = count;
    smallest_.push_back(static_cast<Index>(i));
  }
  const auto index = smallest_.back();
  smallest_.pop_back();
  return index;
}

void SpaceSaving::enter(Index index) noexcept {
  auto at = counters_[index].client.lo & mask_;
  while (index_[at] != kEmptyEntry) at = (at + 1) & mask_;
  index_[at] = index;
}

// Removes a counter from the index, a hash table. Moves later entries up, so that no search for them ends too
// early at the free place (Knuth, volume 3, §6.4, algorithm R).
void SpaceSaving::remove(Index index) noexcept {
  auto hole = counters_[index].client.lo & mask_;
  while (index_[hole] != index) hole = (hole + 1) & mask_;
  for (auto at = (hole + 1) & mask_; index_[at] != kEmptyEntry; at = (at + 1) & mask_) {
    const auto home = counters_[index_[at]].client.lo & mask_;
    if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
    index_[hole] = index_[at];
    hole = at;
  }
  index_[hole] = kEmptyEntry;
}

void SpaceSaving::reindex() noexcept {
  std::fill(index_.begin(), index_.end(), kEmptyEntry);
  for (std::size_t i = 0; i < counters_.size(); ++i) enter(static_cast<Index>(i));
  smallest_.clear();
}

// A client that has a counter in only one of the two summaries may have had costs in the other summary, too.
// These costs are at most the smallest count of the other summary. So this function adds that count to the
// client's count and error.
void SpaceSaving::merge(const SpaceSaving& other) {
  const auto here = floor(), there = other.floor();
  std::vector<Counter> all = counters_;
  for (auto& counter : all) {
    counter.count += there;
    counter.error += there;
  }
  for (const auto& counter : other.counters_) {
    if (const auto* known = find(counter.client)) {
      auto& both = all[static_cast<std::size_t>(known - counters_.data())];
      both.count += counter.count - there;
      both.error += counter.error - there;
    } else {
      all.push_back(counter);
      all.back().count += here;
      all.back().error += here;
    }
  }
  std::sort(all.begin(), all.end(), [](const Counter& a, const Counter& b) { return a.count > b.count; });
  all.resize(std::min(all.size(), capacity_));
  counters_.assign(all.begin(), all.end());
  total_ += other.total_;
  reindex();
}

}  // namespace weir::observe
