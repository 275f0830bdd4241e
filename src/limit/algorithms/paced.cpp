#include "weir/limit/paced.hpp"

#include "limit/algorithms/arithmetic.hpp"

namespace weir::limit {

namespace {

Step paced(const Spacing& spacing, const Cell& cell, base::TimePoint now, Cost cost) noexcept {
  const auto s = spacing.step(tat_of(cell), now, cost);
  return {s.outcome, cell_of(s.tat), now + s.outcome.reset_after};
}

template <class Bucket, class Wrap>
base::Result<Bucket> wrapped(base::Result<Spacing> spacing, Wrap wrap) {
  if (!spacing) return spacing.error();
  return wrap(*spacing);
}

}  // namespace

base::Result<TokenBucket> TokenBucket::make(Rate limit, std::uint64_t burst) {
  return wrapped<TokenBucket>(Spacing::make(limit, burst), [](const Spacing& s) { return TokenBucket(s); });
}

Step TokenBucket::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  return paced(spacing_, cell, now, cost);
}

base::Result<Gcra> Gcra::make(Rate limit, std::uint64_t burst) {
  return wrapped<Gcra>(Spacing::make(limit, burst + 1), [](const Spacing& s) { return Gcra(s); });
}

Step Gcra::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  return paced(spacing_, cell, now, cost);
}

base::Result<LeakyBucket> LeakyBucket::make(Rate limit, std::uint64_t queue, base::Duration max_wait) {
  return wrapped<LeakyBucket>(Spacing::make_queue(limit, queue + 1, max_wait),
                              [](const Spacing& s) { return LeakyBucket(s); });
}

Step LeakyBucket::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  const auto s = spacing_.step(tat_of(cell), now, cost);
  Step result{s.outcome, cell_of(s.tat), now + s.outcome.reset_after};
  if (s.outcome.allowed) result.outcome.delay = s.wait;
  return result;
}

Cell LeakyBucket::withdraw(const Cell& cell, base::TimePoint departure, Cost cost) const noexcept {
  const Ticks before = spacing_.refund(tat_of(cell), cost);
  // The charge moved the TAT from its departure on. If it departed at once, that is the instant of the
  // charge.
  return spacing_.instant(before) == departure ? cell_of(before) : cell;
}

}  // namespace weir::limit
