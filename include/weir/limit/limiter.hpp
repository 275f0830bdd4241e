// A limiter is one algorithm with its parameters. A limiter is immutable, and all its keys share the object.
// A step is pure:
//
//   (parameters, state, now, cost) → (outcome, new state)
//
// The owner of the state (the key table, or a script in Redis) applies a step atomically to one key.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/concurrency.hpp"
#include "weir/limit/paced.hpp"
#include "weir/limit/sliding_log.hpp"
#include "weir/limit/stepped_bucket.hpp"
#include "weir/limit/window.hpp"

#include <cstdint>
#include <string>
#include <variant>

namespace weir::limit {

using Limiter = std::variant<TokenBucket, Gcra, LeakyBucket, SteppedBucket, FixedWindow, SlidingWindow,
                             SlidingLog, Concurrency, AdaptiveConcurrency>;

// Returns the outcome and the new state of one request. REQUIRES: the cell of a SlidingLog is a log of one
// entry. (For logs of several entries see SlidingLog::Answer.)
[[nodiscard]] Step step(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost) noexcept;

// Returns the key's state as if an earlier charge had not happened. For a bucket this is exact, unless the
// bucket would have become full in the meantime without the charge. Then the refund also returns units that
// time had refilled already, at most `cost`. Windows and logs refund a charge that has not expired.
// Concurrency limits release the permit and learn no latency. `departure` must be the time of the charge plus
// its delay.
[[nodiscard]] Cell refund(const Limiter& limiter, const Cell& cell, base::TimePoint departure,
                          Cost cost) noexcept;

// Returns true for concurrency limits: each request holds its units until its exchange ends.
[[nodiscard]] bool holds(const Limiter& limiter) noexcept;
// Returns the number of units in flight. Zero for limiters that are not concurrency limits.
[[nodiscard]] std::uint64_t in_flight(const Limiter& limiter, const Cell& cell) noexcept;
// Returns the key's state after a request has released its units. REQUIRES: holds(limiter).
[[nodiscard]] Cell release(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                           const Ending& ending) noexcept;

// Converts a state of `from` into a state of `to`. The new state is fresh again at the same instant (rounded
// up). For a concurrency limit, it has the same number of units in flight. Needed if several limiters share a
// state, because they may count in different units. Returns a fresh state if one algorithm cannot use the
// other's states, which happens only after a change of the configuration.
[[nodiscard]] Cell carry_over(const Limiter& from, const Cell& cell, const Limiter& to) noexcept;

// Returns when `cell` will equal the state of a fresh key; kNever while a request holds concurrency units of
// `cell`.
[[nodiscard]] base::TimePoint drained_at(const Limiter& limiter, const Cell& cell) noexcept;

// Returns the GcraCore of a token bucket, a GCRA or a leaky bucket; null for other algorithms.
[[nodiscard]] const GcraCore* gcra_core(const Limiter& limiter) noexcept;

// Returns the quota that the rate limit headers report: how many units an idle client may spend at once. For
// a leaky bucket this is `queue`.
[[nodiscard]] std::uint64_t quota(const Limiter& limiter) noexcept;
// Returns the quota at the time of `outcome`: outcome.limit for an adaptive concurrency limit, which changes
// with time; otherwise quota(limiter).
[[nodiscard]] inline std::uint64_t quota_of(const Limiter& limiter, const Outcome& outcome) noexcept {
  return outcome.limit != 0 ? outcome.limit : quota(limiter);
}
// Returns the window `w` that the headers report: the time in which a used-up quota refills completely. Zero
// for a concurrency limit.
[[nodiscard]] base::Duration window(const Limiter& limiter) noexcept;
// Returns the longest delay of a request. Returns kForever if only the queue's length bounds the delay, or if
// the limiter never delays requests.
[[nodiscard]] base::Duration longest_wait(const Limiter& limiter) noexcept;
// Returns how many requests of this cost may wait in a queue: `queue`, or fewer if max_wait allows fewer. 0
// for other algorithms.
[[nodiscard]] std::uint64_t most_waiting(const Limiter& limiter, Cost cost = 1) noexcept;
// Returns "token_bucket", "gcra", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log",
// "concurrency" or "adaptive_concurrency".
[[nodiscard]] const char* algorithm_name(const Limiter& limiter) noexcept;
// Returns a line for people: "token_bucket 10/s, burst 100".
[[nodiscard]] std::string describe(const Limiter& limiter);

}  // namespace weir::limit
