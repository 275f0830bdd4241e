#include "weir/limit/settle.hpp"

#include "limit/algorithms/arithmetic.hpp"
#include "limit/snapshot/time_shift.hpp"

#include <algorithm>
#include <type_traits>

namespace weir::limit {

namespace {

static_assert(kHundredYears == micros(kLongestDebt));

// Returns the units to add to a count when a charge turns out to cost more than was reserved. If
// `reserve_counts`, the count still contains `reserved`, so only the difference is added. Otherwise the whole
// actual cost is added.
constexpr Cost units_to_add(bool reserve_counts, Cost reserved, Cost actual) noexcept {
  return reserve_counts ? actual - reserved : actual;
}

template <class L>
concept Bucket = std::is_same_v<L, TokenBucket> || std::is_same_v<L, Gcra>;
template <class L>
concept Windowed =
    std::is_same_v<L, SteppedBucket> || std::is_same_v<L, FixedWindow> || std::is_same_v<L, SlidingWindow>;

struct RaiseCost {
  const Cell& cell;
  base::TimePoint charged_at;
  Cost reserved, actual;

  template <Bucket L>
  Cell operator()(const L& l) const noexcept {
    return cell_of(l.gcra_core().raise_cost(tat_of(cell), charged_at, reserved, actual));
  }
  template <Windowed L>
  Cell operator()(const L& l) const noexcept {
    return l.raise_cost(cell, charged_at, reserved, actual);
  }
  template <class L>
  Cell operator()(const L&) const noexcept {
    return cell;
  }
};

}  // namespace

Ticks GcraCore::raise_cost(Ticks tat, base::TimePoint charged_at, Cost reserved, Cost actual) const noexcept {
  const Ticks at = ticks(charged_at);
  const Ticks from = std::max(tat, at + Ticks{reserved} * interval_);
  const Ticks bound = std::max(from, at + Ticks{kHundredYears} * rate_.count);
  return std::min(from + Ticks{actual - reserved} * interval_, bound);
}

Cell SteppedBucket::raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                               Cost actual) const noexcept {
  constexpr Ticks kMostSpent = std::uint64_t{1} << 62;
  const auto [anchor, spent] = cell.words;
  const bool counts = spent != 0;
  const Ticks bound = std::min(Ticks{kHundredYears / micros(rate_.period)} * rate_.count, kMostSpent);
  const Ticks owed = std::min(Ticks{spent} + units_to_add(counts, reserved, actual), bound);
  return {{counts ? anchor : micros(charged_at), std::max(spent, static_cast<std::uint64_t>(owed))}};
}

Cell FixedWindow::raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                             Cost actual) const noexcept {
  const auto end = micros(end_of_window(*this, cell, charged_at));
  const auto [counted_until, used] = cell.words;
  if (used != 0 && counted_until > end) return cell;  // the window of the charge is over
  const bool counts = used != 0 && counted_until == end;
  const std::uint64_t before = counts ? used : 0;
  return {{end, std::min(before + units_to_add(counts, reserved, actual), kMostCount)}};
}

Cell SlidingWindow::raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                               Cost actual) const noexcept {
  const std::uint64_t at = micros(charged_at);
  const auto plus = [&](std::uint64_t& count) {
    count = std::min(count + units_to_add(count != 0, reserved, actual), kMostCount);
  };
  Counts counts = counts_at(cell, at);
  if (at >= counts.start)
    plus(counts.current);
  else if (at + period() >= counts.start)
    plus(counts.previous);
  return cell_of(counts);
}

Cell SlidingLog::settle(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                        Cost actual) const noexcept {
  const std::uint64_t mark = mark_of(charged_at);
  const auto [newest, total] = cell.words;
  const auto entered = [&](std::uint64_t at, Cost cost) {
    return cost != 0 ? Cell{{at, std::min(cost, most_entered())}} : Cell{};
  };
  if (total == 0) return actual > reserved ? entered(mark, actual) : cell;
  if (newest >= mark + marks_) return cell;  // the charge has expired
  if (newest < mark) return actual > reserved ? entered(mark, total + actual) : cell;
  return entered(newest, beyond(total + actual, reserved));
}

bool settles(const Limiter& limiter) noexcept {
  return !holds(limiter) && !std::holds_alternative<LeakyBucket>(limiter);
}

Cell settle(const Limiter& limiter, const Cell& cell, base::TimePoint charged_at, Cost reserved,
            Cost actual) noexcept {
  if (actual == reserved || !settles(limiter)) return cell;
  if (const auto* log = std::get_if<SlidingLog>(&limiter))
    return log->settle(cell, charged_at, reserved, actual);
  if (actual < reserved) return refund(limiter, cell, charged_at, reserved - actual);
  return std::visit(RaiseCost{cell, charged_at, reserved, actual}, limiter);
}

Outcome full(const Limiter& limiter) noexcept {
  return {.allowed = true, .remaining = quota(limiter)};
}

// Returns what the limiter would answer now, without a charge. Asks for one unit first, because zero units
// fit even if none is left (unless the key is in debt). If one unit fits, returns the outcome of cost 0,
// whose `remaining` is the present one. Else returns the refusal of cost 1.
Outcome current_outcome(const Limiter& limiter, const Cell& cell, base::TimePoint now) noexcept {
  if (settles(limiter) && drained_at(limiter, cell) <= now) return full(limiter);
  auto outcome = step(limiter, cell, now, 1).outcome;
  if (!outcome.allowed) return outcome;
  outcome = step(limiter, cell, now, 0).outcome;
  outcome.delay = base::Duration{0};
  return outcome;
}

}  // namespace weir::limit
