// Converts the state of a key when a reload changes the parameters (limit, period, burst) of its limiter. A
// client that has used 60 % of the old limit counts as having used 60 % of the new limit, rounded up. So no
// client gains by the change. For each algorithm, the conversion keeps these values:
//
// * bucket, gcra: time until full ÷ time to fill an empty bucket
// * stepwise: tokens spent ÷ burst, and the elapsed part of the period
// * fixed window: count ÷ limit, in the present window of the new limiter. If `align` changes, the count
//   itself: 10 of 10 requests of a day become 10 of 700 requests of a week.
// * sliding window: both counts ÷ limit; if the period changed, their present weighted sum ÷ limit
// * logs: for each entry, cost ÷ limit, and the time until it expires ÷ period
// * leaky bucket: the promised departures; departures after them have the new rate
// * bucket of a pacer: the number of promised octets, but at most what the new limiter sends in its
//   `max_wait`
// * concurrency: the number of units in flight. An adaptive limit also keeps what it has learned, within the
//   new bounds.
//
// After a change of algorithm the key starts anew, with nothing used. Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/limiter.hpp"

#include <span>
#include <vector>

namespace weir::limit {

// Returns the state `cell` of `from`, converted for `to`. Equal parameters change nothing, and a drained
// (fresh) state stays drained. The used share of the limit does not fall, and rises by less than one unit.
// The function below converts logs with more than one entry.
[[nodiscard]] Cell rescaled(const Limiter& from, const Cell& cell, const Limiter& to,
                            base::TimePoint now) noexcept;

// Converts the entries of a log, oldest first.
[[nodiscard]] std::vector<LogEntry> rescaled(const SlidingLog& from, std::span<const LogEntry> entries,
                                             const SlidingLog& to, base::TimePoint now);

// Convert the cost of an earlier charge under `from` into units of `to`. The cost is scaled with the quota: a
// refund is rounded down, a debt (units charged beyond the limit) up. For queues, concurrency limits and
// windows whose `align` changes, the cost stays the same. Both return 0 after a change of algorithm.
[[nodiscard]] Cost rescaled_refund(const Limiter& from, Cost cost, const Limiter& to) noexcept;
[[nodiscard]] Cost rescaled_debt(const Limiter& from, Cost cost, const Limiter& to) noexcept;

// Returns true if keys keep their usage when a reload replaces `from` by `to`. Returns false if they start
// with nothing used.
[[nodiscard]] bool rescales(const Limiter& from, const Limiter& to) noexcept;

// Returns true if both are fixed windows with different `align`. `align` says whether a window is a day, week
// or month of the calendar, or a period counted from the epoch.
[[nodiscard]] bool changes_align(const Limiter& from, const Limiter& to) noexcept;

}  // namespace weir::limit
