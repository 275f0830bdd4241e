#include "weir/limit/sliding_log.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <string>

namespace weir::limit {

base::Result<SlidingLog> SlidingLog::make(Rate limit) {
  if (limit.count > kMostExact)
    return base::Error{"a sliding log of " + std::to_string(limit.count) +
                       " stores each of them; write at most " + std::to_string(kMostExact) +
                       ", or use sliding_window"};
  if (limit.period > kLongest)
    return base::Error{"a sliding log looks back at most 10 years; use a shorter period, or sliding_window"};
  return SlidingLog(limit, 0);
}

base::Result<SlidingLog> SlidingLog::make(Rate limit, std::uint64_t buckets) {
  if (buckets < 2 || buckets > kMostBuckets)
    return base::Error{"buckets must be from 2 to " + std::to_string(kMostBuckets)};
  if (buckets > micros(limit.period)) return base::Error{"a bucket must be at least 1us long"};
  return SlidingLog(limit, buckets);
}

std::uint64_t SlidingLog::mark_of(base::TimePoint at) const noexcept {
  if (is_exact()) return micros(at);
  return static_cast<std::uint64_t>(divide(Ticks{micros(at)} * marks_, micros(rate_.period)));
}

base::TimePoint SlidingLog::start_of(std::uint64_t mark) const noexcept {
  if (is_exact()) return instant(mark);
  return instant(static_cast<std::uint64_t>(divide_up(Ticks{mark} * micros(rate_.period), marks_)));
}

base::TimePoint SlidingLog::expiry_of(std::uint64_t mark) const noexcept {
  return start_of(mark + marks_);
}

Step SlidingLog::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  const Answer answer = ask(SingleEntry{cell}, now, cost);
  Step result{answer.outcome, cell, answer.drained_at};
  if (!answer.outcome.allowed) return result;
  // A cell holds one entry. If that entry has not expired, its cost is added to the new entry.
  const bool counts = cell.words[1] != 0 && cell.words[0] + marks_ > answer.mark;
  result.next = {{answer.mark, cost + (counts ? cell.words[1] : 0)}};
  result.outcome.more_after = answer.outcome.reset_after;
  return result;
}

Cell SlidingLog::refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept {
  const std::uint64_t mark = mark_of(charged_at);
  if (cell.words[0] < mark || cell.words[0] >= mark + marks_) return cell;  // the charge is not in the cell
  if (cell.words[1] <= cost) return {};
  return {{cell.words[0], cell.words[1] - cost}};
}

base::TimePoint SlidingLog::drained_at(const Cell& cell) const noexcept {
  return cell.words[1] != 0 ? expiry_of(cell.words[0]) : base::TimePoint{};
}

Cell SlidingLog::carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept {
  if (cell.words[1] == 0) return {};
  // `end` is the number of the time step at which the new entry must expire: the first step that begins at
  // `drained_at` or later. An entry expires `marks_` steps after its own step.
  const auto end = divide_up(Ticks{micros(drained_at)} * marks_, micros(rate_.period));
  return {{beyond(static_cast<std::uint64_t>(end), marks_), std::min(cell.words[1], rate_.count)}};
}

}  // namespace weir::limit
