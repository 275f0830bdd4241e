#include "weir/limit/paced.hpp"

#include "limit/algorithms/arithmetic.hpp"

namespace weir::limit {

namespace {

Step paced(const GcraCore& gcra_core, const Cell& cell, base::TimePoint now, Cost cost) noexcept {
  const auto s = gcra_core.step(tat_of(cell), now, cost);
  return {s.outcome, cell_of(s.tat), now + s.outcome.reset_after};
}

template <class Bucket, class Wrap>
base::Result<Bucket> wrapped(base::Result<GcraCore> gcra_core, Wrap wrap) {
  if (!gcra_core) return gcra_core.error();
  return wrap(*gcra_core);
}

}  // namespace

base::Result<TokenBucket> TokenBucket::make(Rate limit, std::uint64_t burst) {
  return wrapped<TokenBucket>(GcraCore::make(limit, burst), [](const GcraCore& s) { return TokenBucket(s); });
}

Step TokenBucket::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  return paced(gcra_core_, cell, now, cost);
}

base::Result<Gcra> Gcra::make(Rate limit, std::uint64_t burst) {
  return wrapped<Gcra>(GcraCore::make(limit, burst + 1), [](const GcraCore& s) { return Gcra(s); });
}

Step Gcra::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  return paced(gcra_core_, cell, now, cost);
}

base::Result<LeakyBucket> LeakyBucket::make(Rate limit, std::uint64_t queue, base::Duration max_wait) {
  return wrapped<LeakyBucket>(GcraCore::make_queue(limit, queue + 1, max_wait),
                              [](const GcraCore& s) { return LeakyBucket(s); });
}

Step LeakyBucket::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  const auto s = gcra_core_.step(tat_of(cell), now, cost);
  Step result{s.outcome, cell_of(s.tat), now + s.outcome.reset_after};
  if (s.outcome.allowed) result.outcome.delay = s.wait;
  return result;
}

Cell LeakyBucket::withdraw(const Cell& cell, base::TimePoint departure, Cost cost) const noexcept {
  const Ticks before = gcra_core_.refund(tat_of(cell), cost);
  // `before` is the TAT (theoretical arrival time) without the charge. If it equals `departure`, no later
  // request was charged. Otherwise the state stays as it is, because later requests keep their promised
  // departures. For a request without delay, `departure` is the time of the charge.
  return gcra_core_.instant(before) == departure ? cell_of(before) : cell;
}

}  // namespace weir::limit
