#include "weir/limit/window.hpp"

#include "limit/algorithms/arithmetic.hpp"
#include "limit/snapshot/time_shift.hpp"

#include <algorithm>

namespace weir::limit {

base::Result<FixedWindow> FixedWindow::make(Rate limit) {
  return FixedWindow(limit, Align::Epoch, nullptr);
}

base::Result<FixedWindow> FixedWindow::make(std::uint64_t count, Align align,
                                            std::shared_ptr<const Calendar> calendar) {
  if (align == Align::Epoch || !calendar) return base::Error{"a window of the calendar needs a calendar"};
  const auto days = align == Align::Day ? 1 : align == Align::Week ? 7 : 31;
  return FixedWindow({count, std::chrono::hours(24) * days}, align, std::move(calendar));
}

Interval FixedWindow::window_at(base::TimePoint at) const noexcept {
  switch (align_) {
    case Align::Day:
      return calendar_->day(at);
    case Align::Week:
      return calendar_->week(at);
    case Align::Month:
      return calendar_->month(at);
    case Align::Epoch:
      break;
  }
  const auto start = at - base::Duration(at.time_since_epoch().count() % rate_.period.count());
  return {start, start + rate_.period};
}

// Looks up the calendar only if the window of the cell (the key's state) is over.
Step FixedWindow::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  std::uint64_t used = cell.words[1];
  base::TimePoint end = instant(cell.words[0]);
  if (used == 0 || end <= now) {
    used = 0;
    end = window_at(now).end;
  }
  Step result{.outcome = {}, .next = cell, .drained_at = {}};
  Outcome& out = result.outcome;
  out.allowed = cost <= beyond(rate_.count, used);
  if (out.allowed) {
    used += cost;
    result.next = {{micros(end), used}};
  }
  out.remaining = beyond(rate_.count, used);
  out.reset_after = used != 0 ? end - now : base::Duration{0};
  result.drained_at = now + out.reset_after;
  if (!out.allowed) out.retry_after = cost > rate_.count ? base::kForever : end - now;
  out.more_after = out.allowed ? out.reset_after : out.retry_after;
  return result;
}

Cell FixedWindow::refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept {
  if (cell.words[1] == 0 || end_of_window(*this, cell, charged_at) != instant(cell.words[0])) return cell;
  const std::uint64_t used = beyond(cell.words[1], cost);
  return used != 0 ? Cell{{cell.words[0], used}} : Cell{};
}

base::TimePoint FixedWindow::drained_at(const Cell& cell) const noexcept {
  return cell.words[1] != 0 ? instant(cell.words[0]) : base::TimePoint{};
}

Cell FixedWindow::carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept {
  if (cell.words[1] == 0) return {};
  return {{micros(window_at(drained_at - base::Duration{1}).end), cell.words[1]}};
}

base::Result<SlidingWindow> SlidingWindow::make(Rate limit) {
  return SlidingWindow(limit);
}

SlidingWindow::Counts SlidingWindow::counts_of(const Cell& cell) noexcept {
  return {cell.words[0], cell.words[1] >> 32, cell.words[1] & 0xffff'ffff};
}

Cell SlidingWindow::cell_of(const Counts& counts) noexcept {
  if (counts.previous == 0 && counts.current == 0) return {};
  return {{counts.start, (counts.previous << 32) | counts.current}};
}

// Returns the counts of the window that contains the instant `at` (in µs), and of the window before it. If
// `at` is before the cell's window, returns the counts of the cell.
SlidingWindow::Counts SlidingWindow::counts_at(const Cell& cell, std::uint64_t at) const noexcept {
  Counts counts = counts_of(cell);
  if (at < counts.start) return counts;
  const std::uint64_t since = at - counts.start;
  if (since < period() && cell.words[1] != 0) return counts;
  const std::uint64_t start = at - at % period();
  if (since < 2 * period() && counts.current != 0) return {start, counts.current, 0};
  return {start, 0, 0};
}

std::uint64_t SlidingWindow::fits_at(const Counts& counts, std::uint64_t at, Cost cost) const noexcept {
  const std::uint64_t room = rate_.count - cost;
  // Returns the time in µs from the start of a window until the previous window's weighted count is at most
  // `bound`. `count`: the previous window's count without weight.
  const auto faded = [&](std::uint64_t count, std::uint64_t bound) {
    if (count <= bound) return std::uint64_t{0};
    return period() - static_cast<std::uint64_t>(divide(Ticks{bound} * period(), count));
  };
  if (counts.current <= room)
    return std::max(at, counts.start + faded(counts.previous, room - counts.current));
  return counts.start + period() + faded(counts.current, room);
}

Cost SlidingWindow::remaining(const Counts& counts, std::uint64_t at) const noexcept {
  const Ticks left = counts.start + period() - at;  // the time until the current window ends, in µs
  const auto weighted = static_cast<std::uint64_t>(divide_up(counts.previous * left, period()));
  return beyond(rate_.count, counts.current + weighted);
}

Step SlidingWindow::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  Counts counts = counts_at(cell, micros(now));
  const std::uint64_t at = std::max(micros(now), counts.start);
  const auto until = [&](std::uint64_t us) { return instant(us) - now; };
  const bool fits_ever = cost <= rate_.count;
  const std::uint64_t fits = fits_ever ? fits_at(counts, at, cost) : 0;

  Step result{.outcome = {}, .next = cell, .drained_at = {}};
  Outcome& out = result.outcome;
  out.allowed = fits_ever && fits == at;
  if (out.allowed) {
    counts.current += cost;
    result.next = cell_of(counts);
  }
  out.remaining = remaining(counts, at);
  result.drained_at = std::max(now, drained_at(cell_of(counts)));
  out.reset_after = result.drained_at - now;
  if (!out.allowed) out.retry_after = fits_ever ? until(fits) : base::kForever;
  out.more_after = out.allowed ? until(fits_at(counts, at, out.remaining + 1)) : out.retry_after;
  return result;
}

Cell SlidingWindow::refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept {
  Counts counts = counts_of(cell);
  const std::uint64_t at = micros(charged_at);
  if (at >= counts.start + period()) return cell;  // the charge is later than both windows of the cell
  if (at >= counts.start)
    counts.current = beyond(counts.current, cost);
  else if (at + period() >= counts.start)
    counts.previous = beyond(counts.previous, cost);
  return cell_of(counts);
}

base::TimePoint SlidingWindow::drained_at(const Cell& cell) const noexcept {
  const Counts counts = counts_of(cell);
  if (counts.current != 0) return instant(counts.start + 2 * period());
  return counts.previous != 0 ? instant(counts.start + period()) : base::TimePoint{};
}

Cell SlidingWindow::carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept {
  const Counts counts = counts_of(cell);
  const std::uint64_t all = std::min(counts.previous + counts.current, rate_.count);
  if (all == 0) return {};
  const std::uint64_t last = micros(drained_at) - 1;
  return cell_of({last - last % period(), 0, all});
}

}  // namespace weir::limit
