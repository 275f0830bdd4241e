// A token bucket that is refilled by whole amounts (`refill = "stepwise"`): `count` tokens at the end of each
// period, and none in between. "$200 a day, $50 refilled every six hours".
//
// Periods are counted from the moment the bucket left full, so that an absent key and a full bucket are the
// same, and no client gains by guessing a boundary. The meter is that of ITU-T I.371's leaky bucket with its
// drain made discrete.
//
// State: word 0 the instant of the last refill that is accounted for (µs), word 1 the tokens spent. With
// nothing spent the bucket is full, whatever word 0 says.
//
//   anchor      anchor + P   now   anchor + 2P
//     |—————————————|————————•———————|———         spent(now) = spent − count × ⌊(now − anchor) / P⌋, at least
//     0
//
// Over an interval of length L at most burst + count × (⌊L / P⌋ + 1) are admitted: a refill may fall on
// either end of it.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

class SteppedBucket {
 public:
  // REQUIRES of the values, else an error in words: burst ≥ 1, and an empty bucket is full within 100 years.
  [[nodiscard]] static base::Result<SteppedBucket> make(Rate limit, std::uint64_t burst);

  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Gives back at most what is still spent. The periods go on from where they were counted.
  [[nodiscard]] Cell refund(const Cell& cell, Cost cost) const noexcept;
  // A charge of `reserved` has turned out to be one of `actual`, which is more (limit/settle.hpp).
  [[nodiscard]] Cell owe(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                         Cost actual) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // As much spent, in a bucket of these numbers that is full when the other one would be.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return burst_; }
  [[nodiscard]] base::Duration window() const noexcept { return rate_.period * refills(burst_); }
  friend bool operator==(const SteppedBucket&, const SteppedBucket&) = default;

 private:
  SteppedBucket(Rate rate, std::uint64_t burst) noexcept : rate_(rate), burst_(burst) {}
  // How many refills bring so much.
  [[nodiscard]] std::int64_t refills(std::uint64_t tokens) const noexcept {
    return static_cast<std::int64_t>(tokens / rate_.count + (tokens % rate_.count != 0 ? 1 : 0));
  }

  Rate rate_;
  std::uint64_t burst_;
};

}  // namespace weir::limit
