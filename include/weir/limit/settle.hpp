// Settling: a request was charged before anybody knew what it costs, and now its answer has said so.
//
// What was reserved counts while the request is under way, so that parallel requests cannot slip in between.
// Less than that goes back; more is owed: it is charged whether it fits or not, and the key stands beyond its
// limit until time has paid for it. Either way the state becomes that of having charged the actual cost when
// the reserve was:
//
//   bucket, gcra   the TAT moves on by the rest, beyond the depth if need be; exact unless the key would have
//                  stood full in between (limit/limiter.hpp, refund)
//   windows, logs  it is entered where the reserve was, if that still counts
//
// A debt of over a hundred years counts as one of a hundred years (kLongestDebt), and a count as at most 2^32
// − 1 (of an exact log 2^14 − 1 an entry, more than any such log admits): whoever answers a cost of 2^31
// cannot make arithmetic overflow.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/limiter.hpp"

namespace weir::limit {

// More owed than that counts as so much.
inline constexpr base::Duration kLongestDebt = std::chrono::hours(24 * 36'525);

// Whether a charge by this limiter can be settled. Not what queues, whose state is promises of departures
// that cannot be recalled, and not what holds, which comes back anyway.
[[nodiscard]] bool settles(const Limiter& limiter) noexcept;

// The cell as if `actual` (0 to kMaxCost) had been charged at `charged_at` in place of `reserved`. A fresh
// cell knows nothing of the reserve, which has been paid for meanwhile: it is charged whole, as of then.
// REQUIRES settles(limiter), and that `reserved` was charged then; once for each charge.
[[nodiscard]] Cell settle(const Limiter& limiter, const Cell& cell, base::TimePoint charged_at, Cost reserved,
                          Cost actual) noexcept;

// Where a key stands, with nothing asked of it: `remaining`, `reset_after` and `more_after` as after a
// charge. `allowed`: whether one unit would fit; if not, `retry_after` says when it will. REQUIRES
// settles(limiter).
[[nodiscard]] Outcome standing(const Limiter& limiter, const Cell& cell, base::TimePoint now) noexcept;

// Of a key that stands as a fresh one does.
[[nodiscard]] Outcome full(const Limiter& limiter) noexcept;

}  // namespace weir::limit
