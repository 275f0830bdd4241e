#include "weir/limit/limiter.hpp"

#include "weir/base/units.hpp"

namespace weir::limit {

namespace {

Ticks tat_of(const Cell& cell) noexcept {
  return (Ticks{cell.words[1]} << 64) | cell.words[0];
}

Cell cell_of(Ticks tat) noexcept {
  return {{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}};
}

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
  return wrapped<LeakyBucket>(Spacing::make(limit, queue + 1, max_wait),
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
  // The charge moved the TAT from the departure itself, or, where it departed at once, from the instant of
  // the charge.
  return spacing_.instant(before) == departure ? cell_of(before) : cell;
}

Step step(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost) noexcept {
  return std::visit([&](const auto& l) { return l.step(cell, now, cost); }, limiter);
}

Cell refund(const Limiter& limiter, const Cell& cell, base::TimePoint departure, Cost cost) noexcept {
  if (const auto* queue = std::get_if<LeakyBucket>(&limiter)) return queue->withdraw(cell, departure, cost);
  return std::visit([&](const auto& l) { return cell_of(l.spacing().refund(tat_of(cell), cost)); }, limiter);
}

Cell carry_over(const Limiter& from, const Cell& cell, const Limiter& to) noexcept {
  const auto at = drained_at(from, cell);
  return std::visit([&](const auto& l) { return cell_of(l.spacing().ticks(at)); }, to);
}

base::TimePoint drained_at(const Limiter& limiter, const Cell& cell) noexcept {
  return std::visit([&](const auto& l) { return l.spacing().instant(tat_of(cell)); }, limiter);
}

std::uint64_t quota(const Limiter& limiter) noexcept {
  return std::visit([](const auto& l) { return l.quota(); }, limiter);
}

base::Duration window(const Limiter& limiter) noexcept {
  return std::visit([](const auto& l) { return l.spacing().window(); }, limiter);
}

base::Duration longest_wait(const Limiter& limiter) noexcept {
  const auto* queue = std::get_if<LeakyBucket>(&limiter);
  return queue != nullptr ? queue->spacing().max_wait() : base::kForever;
}

const char* algorithm_name(const Limiter& limiter) noexcept {
  struct Name {
    const char* operator()(const TokenBucket&) const { return "token_bucket"; }
    const char* operator()(const Gcra&) const { return "gcra"; }
    const char* operator()(const LeakyBucket&) const { return "leaky_bucket"; }
  };
  return std::visit(Name{}, limiter);
}

std::string describe(const Limiter& limiter) {
  struct Line {
    std::string operator()(const TokenBucket& l) const { return "burst " + std::to_string(l.quota()); }
    std::string operator()(const Gcra& l) const { return "burst " + std::to_string(l.quota() - 1); }
    std::string operator()(const LeakyBucket& l) const {
      auto line = "queue " + std::to_string(l.quota());
      if (l.spacing().max_wait() != base::kForever)
        line += ", max_wait " + base::to_string(l.spacing().max_wait());
      return line;
    }
  };
  const auto rate = std::visit([](const auto& l) { return to_string(l.spacing().rate()); }, limiter);
  return std::string(algorithm_name(limiter)) + " " + rate + ", " + std::visit(Line{}, limiter);
}

}  // namespace weir::limit
