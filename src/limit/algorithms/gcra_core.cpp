#include "weir/limit/gcra_core.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace weir::limit {

namespace {

// A queue accepts requests of at most this cost, or of its own length if that is more. Without this bound, a
// client that declares its own cost could block a shared queue for years.
constexpr std::uint64_t kDearest = 1000;

constexpr base::Duration ceil_micros(Ticks ticks, std::uint64_t per_micro) noexcept {
  constexpr Ticks kMost = std::numeric_limits<std::int64_t>::max();
  const Ticks micros = divide(ticks + (per_micro - 1), per_micro);
  return base::Duration(static_cast<std::int64_t>(std::min(micros, kMost)));
}

// Returns ⌊a / unit⌋. `unit` exceeds 64 bits only for expensive requests of very slow queues.
constexpr Ticks divide_by(Ticks a, Ticks unit) noexcept {
  constexpr Ticks kMost64 = std::numeric_limits<std::uint64_t>::max();
  return unit <= kMost64 ? divide(a, static_cast<std::uint64_t>(unit)) : a / unit;
}

}  // namespace

base::Result<GcraCore> GcraCore::make(Rate rate, std::uint64_t capacity, base::Duration max_wait) {
  if (capacity == 0) return base::Error{"the capacity must be at least 1"};
  GcraCore s;
  s.rate_ = rate;
  s.capacity_ = capacity;
  s.interval_ = static_cast<std::uint64_t>(rate.period.count());
  s.depth_ = Ticks{capacity} * s.interval_;
  if (s.depth_ / rate.count > kHundredYears)
    return base::Error{"a capacity of " + std::to_string(capacity) + " takes over 100 years to fill at " +
                       to_string(rate) + "; lower it or raise the rate"};
  s.max_wait_ = max_wait;
  s.longest_ = max_wait == base::kForever ? std::numeric_limits<Ticks>::max()
                                          : Ticks(static_cast<std::uint64_t>(max_wait.count())) * rate.count;
  s.window_ = ceil_micros(s.depth_, rate.count);
  return s;
}

base::Result<GcraCore> GcraCore::make_queue(Rate rate, std::uint64_t capacity, base::Duration max_wait) {
  auto made = make(rate, capacity, max_wait);
  if (made) made->counts_requests_ = true;
  return made;
}

// Returns the Measure of a request of this cost. Cost 0, which reads the state without a charge, has the
// Measure of cost 1. A cost above largest_cost() gets a depth of 0, so the request never fits.
GcraCore::Measure GcraCore::measure(Cost cost) const noexcept {
  if (!counts_requests_) return {interval_, depth_, std::min(depth_, longest_)};
  if (cost > largest_cost()) return {Ticks{cost} * interval_, 0, 0};
  const Ticks each = std::max<Cost>(cost, 1);
  const Ticks depth = std::min(depth_ * each, Ticks{kHundredYears} * rate_.count);
  return {interval_ * each, depth, std::min(depth, longest_)};
}

// Returns how many units fit now if the TAT (theoretical arrival time) is `wait` ahead of now.
Ticks GcraCore::spendable(Ticks wait, const Measure& by) noexcept {
  if (wait > by.longest) return 0;
  const Ticks by_depth = wait >= by.depth ? 0 : divide_by(by.depth - wait, by.unit);
  if (by.longest >= by.depth) return by_depth;
  return std::min(by_depth, divide_by(by.longest - wait, by.unit) + 1);
}

base::Duration GcraCore::window(Cost cost) const noexcept {
  return cost == 1 ? window_ : ceil_micros(measure(cost).depth, rate_.count);
}

std::uint64_t GcraCore::largest_cost() const noexcept {
  if (!counts_requests_) return capacity_;
  const Ticks within = divide(Ticks{kHundredYears} * rate_.count, interval_);
  return static_cast<std::uint64_t>(std::min(within, Ticks{std::max(capacity_, kDearest)}));
}

Ticks GcraCore::room(Cost cost) const noexcept {
  const auto by = measure(cost);
  return std::min(by.depth - Ticks{cost} * interval_, by.longest);
}

GcraCore::Step GcraCore::step(Ticks tat, base::TimePoint now, Cost cost) const noexcept {
  const Ticks at = ticks(now);
  const Ticks from = std::max(tat, at);
  const Ticks wait = from - at;
  const Ticks need = Ticks{cost} * interval_;
  const auto by = measure(cost);

  Step result{.outcome = {}, .tat = tat, .wait = ceil_micros(wait, rate_.count)};
  Outcome& out = result.outcome;
  out.allowed = wait + need <= by.depth && wait <= by.longest;
  const Ticks left = out.allowed ? wait + need : wait;
  const Ticks remaining = spendable(left, by);
  out.remaining = static_cast<Cost>(remaining);
  out.reset_after = ceil_micros(left, rate_.count);
  if (out.allowed) {
    result.tat = from + need;
    // Computes the time until one more unit fits, both within the depth and within the longest wait.
    const Ticks ahead = left + remaining * by.unit;
    out.more_after =
        ceil_micros(std::max(beyond(ahead + by.unit, by.depth), beyond(ahead, by.longest)), rate_.count);
    return result;
  }
  if (need > by.depth) {
    out.retry_after = base::kForever;
  } else {
    out.retry_after =
        ceil_micros(std::max(beyond(wait + need, by.depth), beyond(wait, by.longest)), rate_.count);
  }
  out.more_after = out.retry_after;
  return result;
}

Ticks GcraCore::refund(Ticks tat, Cost cost) const noexcept {
  const Ticks back = Ticks{cost} * interval_;
  return tat > back ? tat - back : 0;
}

base::TimePoint GcraCore::instant(Ticks tat) const noexcept {
  return base::TimePoint(ceil_micros(tat, rate_.count));
}

}  // namespace weir::limit
