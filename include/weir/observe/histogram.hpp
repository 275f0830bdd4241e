// Counts durations in buckets with fixed bounds, as Prometheus expects.
//
// One thread records durations; any thread may read the counts (tally.hpp). Allocates nothing.
#pragma once

#include "weir/base/time.hpp"
#include "weir/observe/tally.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

class Histogram {
 public:
  // The upper bound of each bucket in microseconds, inclusive: from 50 µs to 60 s, each about twice the
  // previous one.
  static constexpr std::array<std::uint32_t, 19> kBounds{
      50,      100,     250,     500,       1'000,     2'500,     5'000,      10'000,     25'000,    50'000,
      100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000, 60'000'000};
  static constexpr std::size_t kBuckets = kBounds.size() + 1;  // the last bucket has no upper bound

  // Records a duration. A negative duration counts as zero.
  void record(base::Duration duration) noexcept {
    const std::int64_t us = std::max<std::int64_t>(duration.count(), 0);
    buckets_[bucket_of(us)].add();
    sum_us_.add(static_cast<std::uint64_t>(us));
  }

  struct Totals {
    // The number of durations in each bucket alone; not cumulative.
    std::array<std::uint64_t, kBuckets> counts{};
    std::uint64_t count = 0;  // the sum of `counts`
    std::uint64_t sum_us = 0;

    Totals& operator+=(const Totals& other) noexcept;
  };
  // Returns the counts. May miss durations that are recorded during the call. `count` always equals the sum
  // of `counts`.
  [[nodiscard]] Totals read() const noexcept;
  // Sets all counts to zero for another use. REQUIRES: no thread records.
  void clear() noexcept;

 private:
  // For each number of bits w: kFirst[w] is the number of bounds below the smallest value of w bits. At most
  // two bounds have the same number of bits, so bucket_of() compares a value with few bounds.
  static constexpr auto kFirst = [] {
    std::array<std::uint8_t, 28> first{};
    for (std::size_t width = 1; width < first.size(); ++width)
      for (const std::uint32_t bound : kBounds)
        if (bound < (1U << (width - 1))) ++first[width];
    return first;
  }();

  // Returns the index of the value's bucket: the number of bounds below the value.
  static constexpr std::size_t bucket_of(std::int64_t us) noexcept {
    const auto clamped = static_cast<std::uint32_t>(std::min<std::int64_t>(us, kBounds.back() + 1));
    std::size_t below = kFirst[static_cast<std::size_t>(std::bit_width(clamped))];
    while (below < kBounds.size() && clamped > kBounds[below]) ++below;
    return below;
  }

  std::array<Tally, kBuckets> buckets_;
  Tally sum_us_;
};

}  // namespace weir::observe
