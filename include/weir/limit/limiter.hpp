// A limiter: one algorithm with its parameters, immutable, shared by all its keys. A step is pure:
//
//   (parameters, state, now, cost) → (outcome, new state)
//
// and whoever keeps the state (the key table here, a script in Redis) applies it atomically to one key.
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

// Of a SlidingLog: over the one entry that a cell can hold.
[[nodiscard]] Step step(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost) noexcept;

// The cell as if an earlier charge had not happened. A bucket: exact unless the key would have stood full
// since without it; then it hands back what time had refilled already, at most the cost that was on hold. A
// window or a log: where it was counted, if that still counts. Concurrency: what is held, and nothing is
// learned of it. `departure`: the instant that was promised with the charge (the time of the charge where
// nothing was delayed).
[[nodiscard]] Cell refund(const Limiter& limiter, const Cell& cell, base::TimePoint departure,
                          Cost cost) noexcept;

// Whether what is charged comes back when the exchange ends.
[[nodiscard]] bool holds(const Limiter& limiter) noexcept;
// How many units of it are held; 0 of what does not hold.
[[nodiscard]] std::uint64_t in_flight(const Limiter& limiter, const Cell& cell) noexcept;
// Takes it back. REQUIRES holds(limiter).
[[nodiscard]] Cell release(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost,
                           const Ending& ending) noexcept;

// A cell of one limiter as another's that drains at the same instant (rounded up), or has as much in flight:
// for limiters that share state, whose cells may count in different units. Fresh where the two are of
// different families, which only a changed configuration makes of one rule.
[[nodiscard]] Cell carry_over(const Limiter& from, const Cell& cell, const Limiter& to) noexcept;

// When `cell` equals a fresh one; kNever while something is in flight.
[[nodiscard]] base::TimePoint drained_at(const Limiter& limiter, const Cell& cell) noexcept;

// The spacing of a token bucket, a GCRA or a leaky bucket; null for the others.
[[nodiscard]] const Spacing* spacing(const Limiter& limiter) noexcept;

// What the headers call limit and `q`: the most that an idle client may spend (for a leaky bucket, `queue`).
[[nodiscard]] std::uint64_t quota(const Limiter& limiter) noexcept;
// The same as it stood when the limiter said so.
[[nodiscard]] inline std::uint64_t quota_of(const Limiter& limiter, const Outcome& outcome) noexcept {
  return outcome.limit != 0 ? outcome.limit : quota(limiter);
}
// What the headers call `w`: the time in which an empty one is whole again. Zero for what holds.
[[nodiscard]] base::Duration window(const Limiter& limiter) noexcept;
// The longest that it delays anybody; kForever where nothing but its queue bounds that, or it delays nobody.
[[nodiscard]] base::Duration longest_wait(const Limiter& limiter) noexcept;
// How many units may wait in a queue: its places, or as many as leave within the longest wait. 0 of others.
[[nodiscard]] std::uint64_t most_waiting(const Limiter& limiter, Cost cost = 1) noexcept;
// "token_bucket", "gcra", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency",
// "adaptive_concurrency".
[[nodiscard]] const char* algorithm_name(const Limiter& limiter) noexcept;
// One line for people: "token_bucket 10/s, burst 100".
[[nodiscard]] std::string describe(const Limiter& limiter);

}  // namespace weir::limit
