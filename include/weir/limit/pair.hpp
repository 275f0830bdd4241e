// Two limiters of one rule: one decides, and both count what it admits. An elastic rule has its own limiter
// and an elastic one. The load decides for each request which of them decides, so both must always be up to
// date.
//
// The limiter that only counts is charged beyond its limit, like a debt (limit/settle.hpp), if the excess
// ends by itself: permits come back, a window ends, a log forgets. The log then keeps the newest units: as
// many as the deciding limiter can have admitted in its own period, and never more entries than that. Buckets
// and queues are charged only what fits. Otherwise they would stay in debt for as long as the other limiter
// admits more.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace weir::limit {

// Returns true if charge `line` only counts what the charge before it decides.
[[nodiscard]] inline bool follows(std::span<const Charge> bill, std::size_t line) noexcept {
  return bill[line].counted && line != 0 && bill[line - 1].rule == bill[line].rule;
}

// Returns true if the limiter counts costs that it would reject.
[[nodiscard]] bool counts_beyond(const Limiter& limiter) noexcept;

// Returns how many units a log then keeps.
[[nodiscard]] inline Cost most_counted(const Limiter& limiter, const Limiter& decider) noexcept {
  return std::max(quota(limiter), quota(decider));
}

// Returns the outcome of the limiter that only counts, where `own` is its answer. `allowed` in the result
// means that it is charged if the bill is. `decided`: the other limiter admits.
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

// Returns the cell after charging a cost that it would reject. A log is a cell with its one entry. REQUIRES:
// counts_beyond(limiter).
[[nodiscard]] Cell charge_over_limit(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                                     Cost most) noexcept;

}  // namespace weir::limit
