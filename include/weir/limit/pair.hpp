// Two limiters of one rule of which one decides, and which both count what it admits: an elastic limit and
// the rule's own. Load chooses who decides, from one request to the next, so that what the other has counted
// has to be right at once.
//
// The one that only counts is charged beyond its limit, as debts are (limit/settle.hpp), where that is paid
// off by itself: what holds gives back, a window ends, a log forgets. A log so keeps as many units, the
// newest ones, as the limiter that decides can have admitted in its own time, and never more entries than
// that one's. A bucket or a queue is charged what fits it: beyond that it would owe for as long as the other
// had more to give.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace weir::limit {

// Whether the line counts what the one before it decides.
[[nodiscard]] inline bool follows(std::span<const Charge> bill, std::size_t line) noexcept {
  return bill[line].counted && line != 0 && bill[line - 1].rule == bill[line].rule;
}

// Whether it counts what it would refuse.
[[nodiscard]] bool counts_beyond(const Limiter& limiter) noexcept;

// How many units it keeps then, if it is a log.
[[nodiscard]] inline Cost most_counted(const Limiter& limiter, const Limiter& decider) noexcept {
  return std::max(quota(limiter), quota(decider));
}

// What the one that counts is told to have said, of what it says by itself: `allowed` is that it is charged
// if the bill is. `decided`: the other one admits.
[[nodiscard]] inline Outcome counted(const Limiter& limiter, Outcome own, bool decided) noexcept {
  if (own.allowed || !decided || !counts_beyond(limiter)) {
    own.allowed = own.allowed && decided;
    return own;
  }
  own.allowed = true;
  own.remaining = 0;
  own.retry_after = base::Duration(0);
  return own;
}

// The cell with a cost charged that it would have refused; of a log, the one entry that a cell can hold.
// REQUIRES counts_beyond(limiter).
[[nodiscard]] Cell charge_beyond(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                                 Cost most) noexcept;

}  // namespace weir::limit
