// Settling corrects a charge that was made before the real cost of the request was known. The real cost comes
// from the server's answer.
//
// The reserved cost counts while the request is under way, so parallel requests cannot exceed the limit. If
// the actual cost is lower, the difference is refunded. If the actual cost is higher, the difference is
// charged even beyond the limit. The key is then in debt until time has paid for the difference. The
// resulting state is as if the actual cost had been charged in the first place:
//
//   bucket, gcra   the TAT moves by the difference. Exact unless the key would have been full in
//                  between (limit/limiter.hpp, refund).
//   windows, logs  weir corrects the count or the entry that contains the charge, unless it has expired.
//
// Bounds keep arithmetic from overflowing, even if a server reports a cost of 2^31. A settlement moves a TAT
// at most to a hundred years after the charge (kLongestDebt), and leaves a stepped bucket at most a hundred
// years to refill. So a bucket that takes nearly a hundred years to fill may forget a part of a cost. A count
// of a window is at most 2^32 − 1. An entry of an exact log is at most 2^14 − 1, which is more than such a
// log admits.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/limiter.hpp"

namespace weir::limit {

// The longest time that a bucket may need after a settlement to refill to its limit: a hundred years. This
// includes the time to pay its debt, the units charged beyond the limit. A settlement reduces a cost that
// would need longer.
inline constexpr base::Duration kLongestDebt = std::chrono::hours(24 * 36'525);

// Returns true if charges of this limiter can be settled. Returns false for queues, because they cannot
// recall promised departures, and for concurrency limits, because their permits are released anyway.
[[nodiscard]] bool settles(const Limiter& limiter) noexcept;

// Returns the key's state as if `actual` (0 to kMaxCost) had been charged at `charged_at` instead of
// `reserved`. A fresh state no longer contains `reserved`. If `actual` is higher, then all of `actual` is
// charged as of `charged_at`. Must be called at most once for each charge. REQUIRES: settles(limiter);
// `reserved` was charged at `charged_at`.
[[nodiscard]] Cell settle(const Limiter& limiter, const Cell& cell, base::TimePoint charged_at, Cost reserved,
                          Cost actual) noexcept;

// Returns the present outcome of a key and charges nothing: the outcome of a check (Charge::cost).
// `remaining`, `reset_after` and `more_after` are set as after an admission. `allowed` is true if one more
// unit would fit. If no unit fits, `retry_after` says when one will fit. `delay` is zero.
[[nodiscard]] Outcome current_outcome(const Limiter& limiter, const Cell& cell, base::TimePoint now) noexcept;

// Returns what current_outcome() returns for a fresh key. REQUIRES: settles(limiter).
[[nodiscard]] Outcome full(const Limiter& limiter) noexcept;

}  // namespace weir::limit
