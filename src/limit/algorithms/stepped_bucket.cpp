#include "weir/limit/stepped_bucket.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <algorithm>
#include <string>

namespace weir::limit {

base::Result<SteppedBucket> SteppedBucket::make(Rate limit, std::uint64_t burst) {
  if (burst == 0) return base::Error{"the capacity must be at least 1"};
  const SteppedBucket bucket(limit, burst);
  const auto refills = Ticks{burst / limit.count} + (burst % limit.count != 0 ? 1 : 0);
  if (refills * micros(limit.period) > kHundredYears)
    return base::Error{"a capacity of " + std::to_string(burst) + " takes over 100 years to fill at " +
                       to_string(limit) + "; lower it or raise the rate"};
  return bucket;
}

Step SteppedBucket::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  const std::uint64_t asked = micros(now);
  const std::uint64_t period = micros(rate_.period);
  std::uint64_t spent = cell.words[1];
  std::uint64_t anchor = spent != 0 ? cell.words[0] : asked;
  if (asked > anchor) {
    const std::uint64_t periods = (asked - anchor) / period;
    spent = static_cast<std::uint64_t>(beyond<Ticks>(spent, Ticks{periods} * rate_.count));
    anchor = spent != 0 ? anchor + periods * period : asked;
  }
  const auto until_refill = [&](std::int64_t n) { return instant(anchor) + rate_.period * n - now; };

  Step result{.outcome = {}, .next = cell, .drained_at = {}};
  Outcome& out = result.outcome;
  // A state that was converted from a larger burst may have more spent tokens than this bucket holds.
  const std::uint64_t room = beyond(burst_, spent);
  out.allowed = cost <= room;
  if (out.allowed) {
    spent += cost;
    result.next = {{anchor, spent}};
  }
  out.remaining = beyond(burst_, spent);
  out.reset_after = spent != 0 ? until_refill(refills(spent)) : base::Duration{0};
  result.drained_at = now + out.reset_after;
  if (out.allowed) {
    out.more_after = until_refill(1);
    return result;
  }
  out.retry_after = cost > burst_ ? base::kForever : until_refill(refills(spent + cost - burst_));
  out.more_after = out.retry_after;
  return result;
}

Cell SteppedBucket::refund(const Cell& cell, Cost cost) const noexcept {
  const std::uint64_t spent = beyond(cell.words[1], cost);
  return spent != 0 ? Cell{{cell.words[0], spent}} : Cell{};
}

base::TimePoint SteppedBucket::drained_at(const Cell& cell) const noexcept {
  if (cell.words[1] == 0) return {};
  return instant(cell.words[0]) + rate_.period * refills(cell.words[1]);
}

Cell SteppedBucket::carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept {
  const std::uint64_t spent = std::min(cell.words[1], burst_);
  if (spent == 0) return {};
  return {{beyond(micros(drained_at), micros(rate_.period * refills(spent))), spent}};
}

}  // namespace weir::limit
