// A rule was given other numbers: what its clients have used of the old limit, as a share of the new one. Who
// had used 60 % of a limit has used 60 % of what it became, rounded up, so no client gains by the change.
//
//   bucket, gcra     how long it takes until full ÷ how long an empty one takes
//   stepwise         the tokens spent ÷ burst, and the part of the period that is over
//   fixed window     the count ÷ limit, in the window of the new numbers that is under way
//   sliding window   both counts ÷ limit; where the period changed, their weighted sum, as of now
//   logs             each entry's cost ÷ limit, its time still to count ÷ period
//   leaky bucket     nothing: departures that were promised stand, and the new rate begins behind them
//   concurrency      nothing: what is under way is so many requests, whatever the limit; what an adaptive
//                    one has learned stays, within the new bounds
//
// Another algorithm begins anew. Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/limiter.hpp"

#include <span>
#include <vector>

namespace weir::limit {

// Laws: numbers that are the same change nothing; a drained cell stays one; the share used afterwards is at
// least the one before, and less than a unit more. Not for logs in more than one entry.
[[nodiscard]] Cell rescaled(const Limiter& from, const Cell& cell, const Limiter& to,
                            base::TimePoint now) noexcept;

// Of a log its entries, oldest first, as those of a log of the other limiter; throws where memory runs out.
[[nodiscard]] std::vector<LogEntry> rescaled(const SlidingLog& from, std::span<const LogEntry> entries,
                                             const SlidingLog& to, base::TimePoint now);

// What a charge under the old numbers, of so many units, comes to under the new ones: to be given back, and
// to be owed. Never more given back, never less owed.
[[nodiscard]] Cost rescaled_refund(const Limiter& from, Cost cost, const Limiter& to) noexcept;
[[nodiscard]] Cost rescaled_debt(const Limiter& from, Cost cost, const Limiter& to) noexcept;

// Whether usage carries over, or begins anew.
[[nodiscard]] bool rescales(const Limiter& from, const Limiter& to) noexcept;

}  // namespace weir::limit
