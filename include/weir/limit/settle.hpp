// Settling corrects a charge that was reserved before its real cost was known. The answer has now told the
// cost.
//
// The reserved cost counts while the request is under way, so parallel requests cannot exceed the limit. If
// the actual cost is lower, the rest is refunded. If it is higher, the rest is charged even beyond the limit,
// and the key is in debt until time has paid for it. The resulting state is that of charging the actual cost
// at first:
//
//   bucket, gcra   the TAT moves by the difference, beyond the depth if necessary. Exact unless the key would
//                  have been full in between (limit/limiter.hpp, refund).
//   windows, logs  the entry of the reserve changes, if it still counts.
//
// Bounds keep arithmetic from overflowing, even if a server reports a cost of 2^31. A debt counts as a
// hundred years at most (kLongestDebt). A count is 2^32 − 1 at most. An entry of an exact log is 2^14 − 1 at
// most, which is more than such a log admits.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/limiter.hpp"

namespace weir::limit {

// A longer debt counts as this long.
inline constexpr base::Duration kLongestDebt = std::chrono::hours(24 * 36'525);

// Returns true if charges of this limiter can be settled. Queues cannot recall promised departures. Permits
// of concurrency come back anyway.
[[nodiscard]] bool settles(const Limiter& limiter) noexcept;

// Returns the cell as if `actual` (0 to kMaxCost) had been charged at `charged_at` instead of `reserved`. A
// fresh cell has already paid for the reserve, so `actual` is charged whole, as of `charged_at`. Call at most
// once for each charge. REQUIRES: settles(limiter); `reserved` was charged at `charged_at`.
[[nodiscard]] Cell settle(const Limiter& limiter, const Cell& cell, base::TimePoint charged_at, Cost reserved,
                          Cost actual) noexcept;

// Returns the present state of a key and charges nothing. `remaining`, `reset_after` and `more_after` are
// those after a charge. `allowed` says whether one unit would fit; if not, `retry_after` says when. REQUIRES:
// settles(limiter).
[[nodiscard]] Outcome current_outcome(const Limiter& limiter, const Cell& cell, base::TimePoint now) noexcept;

// Returns the state of a fresh key.
[[nodiscard]] Outcome full(const Limiter& limiter) noexcept;

}  // namespace weir::limit
