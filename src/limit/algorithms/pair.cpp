#include "weir/limit/pair.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <concepts>

namespace weir::limit {

namespace {

template <class L>
concept CountsBeyond = requires(const L& limiter, const Cell& cell, base::TimePoint now, Cost cost) {
  { limiter.charge_over_limit(cell, now, cost) } -> std::same_as<Cell>;
};

}  // namespace

bool counts_beyond(const Limiter& limiter) noexcept {
  return std::visit([]<class L>(const L&) { return CountsBeyond<L> || std::same_as<L, SlidingLog>; },
                    limiter);
}

Cell charge_over_limit(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                       Cost most) noexcept {
  return std::visit(
      [&]<class L>(const L& l) -> Cell {
        if constexpr (CountsBeyond<L>)
          return l.charge_over_limit(cell, now, cost);
        else if constexpr (std::same_as<L, SlidingLog>)
          return l.charge_over_limit(cell, now, cost, most);
        else
          return cell;
      },
      limiter);
}

// Adds the cost to the count of the present window, even beyond the limit. If the window of the cell (the
// key's state) is over, begins a new window, as step() does.
Cell FixedWindow::charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  const auto [end, used] = cell.words;
  if (used == 0 || instant(end) <= now) return {{micros(window_at(now).end), std::min(cost, kMostCount)}};
  return {{end, std::min(used + cost, kMostCount)}};
}

Cell SlidingWindow::charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  Counts counts = counts_at(cell, micros(now));
  counts.current = std::min(counts.current + cost, kMostCount);
  return cell_of(counts);
}

Cell SlidingLog::charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost,
                                   Cost most) const noexcept {
  const auto mark = std::max(mark_of(now), cell.words[0]);
  const Cost live = cell.words[1] != 0 && cell.words[0] + marks_ > mark ? cell.words[1] : 0;
  return {{mark, std::min({live + cost, most, most_entered()})}};
}

}  // namespace weir::limit
