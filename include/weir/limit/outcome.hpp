// The answer of one limiter to one request. All durations count from the `now` of the step.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

struct Outcome {
  bool allowed = false;
  // If several clocks decided a bill: by how many µs the clock of this charge was ahead of the bill's.
  // Narrow, to share a word with `allowed`.
  std::int32_t ahead = 0;
  // The units that the key can still spend now: after the charge if allowed, without it if rejected.
  Cost remaining = 0;
  // The request would be rejected at every earlier instant and admitted at this one (same cost, no other
  // traffic). Zero if allowed. kForever if the cost exceeds the capacity. Concurrency limits return a hint
  // (limit/concurrency.hpp).
  base::Duration retry_after{0};
  // Until the state equals that of a fresh key.
  base::Duration reset_after{0};
  // Until `remaining` grows by one; zero if it is at its maximum. If rejected, equal to retry_after.
  base::Duration more_after{0};
  // Until the departure of a request that waits in a queue. Zero in all other cases.
  base::Duration delay{0};
  // The key had no slot in the table, and a shared overflow cell answered.
  bool overflow = false;
  // Admitted from units that this process had taken from Redis in advance
  // (src/redis/prefetch/grant_cache.hpp).
  bool in_advance = false;
  // The present limit, if it changes with the key (adaptive_concurrency); zero if quota() says it. Narrow, to
  // share a word with `overflow`, because outcomes are on the hot path.
  std::uint32_t limit = 0;
  // Bucket with units taken in advance: where its slots begin (src/redis/prefetch/grant.hpp). A refund
  // returns the slots to that position.
  Ticks slots_begin = 0;
  base::TimePoint debited_at{};  // units taken in advance: when Redis was charged for them
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace weir::limit
