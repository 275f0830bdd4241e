#include "weir/limit/spacing.hpp"

#include "limit/arithmetic.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace weir::limit {

namespace {

constexpr base::Duration ceil_micros(Ticks ticks, std::uint64_t per_micro) noexcept {
  constexpr Ticks kMost = std::numeric_limits<std::int64_t>::max();
  const Ticks micros = divide(ticks + (per_micro - 1), per_micro);
  return base::Duration(static_cast<std::int64_t>(std::min(micros, kMost)));
}

}  // namespace

base::Result<Spacing> Spacing::make(Rate rate, std::uint64_t capacity, base::Duration max_wait) {
  if (capacity == 0) return base::Error{"the capacity must be at least 1"};
  Spacing s;
  s.rate_ = rate;
  s.capacity_ = capacity;
  s.interval_ = static_cast<std::uint64_t>(rate.period.count());
  s.depth_ = Ticks{capacity} * s.interval_;
  if (s.depth_ / rate.count > kHundredYears)
    return base::Error{"a capacity of " + std::to_string(capacity) + " takes over 100 years to fill at " +
                       to_string(rate) + ": lower it or raise the rate"};
  s.max_wait_ = max_wait;
  s.longest_ = max_wait == base::kForever
                   ? s.depth_
                   : std::min(s.depth_, Ticks(static_cast<std::uint64_t>(max_wait.count())) * rate.count);
  s.window_ = ceil_micros(s.depth_, rate.count);
  return s;
}

// How many units of cost 1 a key could be charged now whose TAT lies `wait` ahead.
Ticks Spacing::spendable(Ticks wait) const noexcept {
  if (wait > longest_) return 0;
  const Ticks by_depth = wait >= depth_ ? 0 : divide(depth_ - wait, interval_);
  if (longest_ >= depth_) return by_depth;
  return std::min(by_depth, divide(longest_ - wait, interval_) + 1);
}

Spacing::Step Spacing::step(Ticks tat, base::TimePoint now, Cost cost) const noexcept {
  const Ticks at = ticks(now);
  const Ticks from = std::max(tat, at);
  const Ticks wait = from - at;
  const Ticks need = Ticks{cost} * interval_;

  Step result{.outcome = {}, .tat = tat, .wait = ceil_micros(wait, rate_.count)};
  Outcome& out = result.outcome;
  out.allowed = wait + need <= depth_ && wait <= longest_;
  const Ticks left = out.allowed ? wait + need : wait;
  const Ticks remaining = spendable(left);
  out.remaining = static_cast<Cost>(remaining);
  out.reset_after = ceil_micros(left, rate_.count);
  if (out.allowed) {
    result.tat = from + need;
    // One more fits once both bounds leave room for it.
    const Ticks ahead = left + remaining * interval_;
    out.more_after =
        ceil_micros(std::max(beyond(ahead + interval_, depth_), beyond(ahead, longest_)), rate_.count);
    return result;
  }
  if (need > depth_) {
    out.retry_after = base::kForever;
  } else {
    out.retry_after = ceil_micros(std::max(beyond(wait + need, depth_), beyond(wait, longest_)), rate_.count);
  }
  out.more_after = out.retry_after;
  return result;
}

Ticks Spacing::refund(Ticks tat, Cost cost) const noexcept {
  const Ticks back = Ticks{cost} * interval_;
  return tat > back ? tat - back : 0;
}

base::TimePoint Spacing::instant(Ticks tat) const noexcept {
  return base::TimePoint(ceil_micros(tat, rate_.count));
}

}  // namespace weir::limit
