// Two limiters of one rule: one decides about a request, and both count the request if it is admitted. Only
// elastic rules have two: their own limiter and the elastic limiter. The present load selects which one
// decides about a request, so the counts of both must always be up to date.
//
// The limiter that does not decide may be charged beyond its limit, if the excess ends by itself: permits are
// released, a window ends, entries of a log expire. A log beyond its limit keeps only its newest units: as
// many as the larger of the two quotas. Buckets and queues are charged only if the cost fits. Otherwise they
// would stay beyond their limit as long as the other limiter admits more.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace weir::limit {

// Returns true if charge number `index` of the bill does not decide whether the request is admitted
// (Charge::counted). In that case the previous charge decides for both charges.
[[nodiscard]] inline bool follows(std::span<const Charge> bill, std::size_t index) noexcept {
  return bill[index].counted && index != 0 && bill[index - 1].rule == bill[index].rule;
}

// Returns true if this limiter may be charged beyond its limit.
[[nodiscard]] bool counts_beyond(const Limiter& limiter) noexcept;

// Returns the most units that a log may keep while another limiter, `decider`, decides about the requests:
// the larger of both quotas. `limiter`: the limiter of the log.
[[nodiscard]] inline Cost most_counted(const Limiter& limiter, const Limiter& decider) noexcept {
  return std::max(quota(limiter), quota(decider));
}

// Returns the outcome of a limiter that does not decide. `own`: the limiter's own answer to the request.
// `decided`: true if the deciding limiter admits the request. The result's `allowed` says whether this
// limiter is charged if the bill is charged.
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

// Returns the key's state after a charge that this limiter would reject, but that the deciding limiter
// admits. `most`: for a SlidingLog, the result of most_counted(); unused for other limiters. REQUIRES:
// counts_beyond(limiter). The cell of a SlidingLog must be a log of one entry, as in an overflow cell: the
// key table itself charges logs of several entries.
[[nodiscard]] Cell charge_over_limit(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                                     Cost most) noexcept;

}  // namespace weir::limit
