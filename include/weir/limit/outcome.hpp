// The answer of one limiter to one request. All durations count from the `now` of the step.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

struct Outcome {
  bool allowed = false;
  // How far the clock that decided this charge was ahead of the clock that the store returned for the whole
  // bill, in µs. Not 0 only if different clocks decided: those of several Redis servers, or a grant's
  // estimate of Redis's clock. Has 32 bits, to share a word with `allowed`.
  std::int32_t ahead = 0;
  // The units that the key can still spend now. If the request is allowed, its own charge is already
  // subtracted.
  Cost remaining = 0;
  // The time until the same request would be admitted, if no other request comes. Before that time, the
  // request would be rejected. Zero if allowed. kForever if the cost exceeds what a fresh key can spend.
  // Concurrency limits return a hint (limit/concurrency.hpp).
  base::Duration retry_after{0};
  // The time until the state equals the state of a fresh key.
  base::Duration reset_after{0};
  // The time until `remaining` grows by one; zero if `remaining` is at its maximum. Equal to retry_after if
  // the request is rejected.
  base::Duration more_after{0};
  // The time until a queued request may depart. Zero if the limiter does not delay the request.
  base::Duration delay{0};
  base::Duration penalty_left{0};  // how long the key's penalty still lasts; zero if none runs
  // True: the overflow cell (a state that keys without a slot in the table share) has decided. Also true if a
  // slot that began as a copy of the overflow cell has refused the request.
  bool overflow = false;
  // True: the request was admitted from units that this process had taken from Redis in advance
  // (src/redis/prefetch/grant_cache.hpp).
  bool prefetched = false;
  // The two members below belong to the rule's penalty (limit/penalty.hpp). `penalty_begins`: this request is
  // a violation, and a penalty begins with it. `violations`: the number of violations that count towards the
  // next penalty; 0 during a penalty.
  bool penalty_begins = false;
  std::uint8_t violations = 0;
  // The present limit of a key of adaptive_concurrency, which changes with time. Zero for all other
  // algorithms, whose limit is quota(). Has 32 bits, to share a word with `overflow` and the members after
  // it, because outcomes are on the hot path.
  std::uint32_t limit = 0;
  // Used only if units of a bucket were taken from Redis in advance. Each unit has a slot: an interval of
  // virtual time (src/redis/prefetch/grant.hpp). `slots_begin` is the instant, in ticks, at which this
  // charge's slots begin. A refund returns these slots.
  Ticks slots_begin = 0;
  base::TimePoint debited_at{};  // when Redis debited the units taken in advance, by its clock
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace weir::limit
