// A token bucket with whole refills (`refill = "stepwise"`): it gains `count` tokens at the end of each
// period and none in between. Example: "$200 a day, $50 refilled every six hours".
//
// Periods start when the bucket stops being full. So an unknown key equals a full bucket, and no client gains
// by guessing when a period begins. The algorithm is the leaky bucket meter of ITU-T I.371 with a drain in
// steps.
//
// State: word 0 is the instant of the last counted refill (µs), word 1 the tokens spent. If word 1 is zero,
// the bucket is full and word 0 is ignored.
//
//   anchor      anchor + P   now   anchor + 2P
//     |—————————————|————————•———————|———   spent(now) = max(0, spent − count × ⌊(now − anchor) / P⌋)
//
// Within an interval of length L, the bucket admits at most burst + count × (⌊L / P⌋ + 1). The + 1 is needed
// because an interval may both begin and end with a refill.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

class SteppedBucket {
 public:
  // Returns an error unless burst ≥ 1 and an empty bucket becomes full within 100 years.
  [[nodiscard]] static base::Result<SteppedBucket> make(Rate limit, std::uint64_t burst);

  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Refunds `cost`, or all spent tokens if fewer are spent. The times of the refills stay the same.
  [[nodiscard]] Cell refund(const Cell& cell, Cost cost) const noexcept;
  // Raises the cost of an earlier charge from `reserved` to `actual` (limit/settle.hpp).
  [[nodiscard]] Cell raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                                Cost actual) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // Returns a state with as many spent tokens as `cell` has. The bucket is full again at `drained_at`.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return burst_; }
  [[nodiscard]] base::Duration window() const noexcept { return rate_.period * refills(burst_); }
  friend bool operator==(const SteppedBucket&, const SteppedBucket&) = default;

 private:
  SteppedBucket(Rate rate, std::uint64_t burst) noexcept : rate_(rate), burst_(burst) {}
  // Returns how many refills it takes to add `tokens` tokens.
  [[nodiscard]] std::int64_t refills(std::uint64_t tokens) const noexcept {
    return static_cast<std::int64_t>(tokens / rate_.count + (tokens % rate_.count != 0 ? 1 : 0));
  }

  Rate rate_;
  std::uint64_t burst_;
};

}  // namespace weir::limit
