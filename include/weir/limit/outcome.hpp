// What one limiter says of one request. Plain values; every duration counts from the `now` of the question.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

struct Outcome {
  bool allowed = false;
  // Of a bill that several clocks decided: how many us the one behind this line was ahead of the bill's.
  // Narrow, to share a word with `allowed`.
  std::int32_t ahead = 0;
  // What the same key could still spend now: after the charge when allowed, as it stands when refused.
  Cost remaining = 0;
  // Refused at every instant before it, admitted at it (same cost, no other traffic). Zero when allowed;
  // kForever when the cost exceeds the capacity and can never fit. Of what is in flight nobody can know: a
  // hint (limit/concurrency.hpp).
  base::Duration retry_after{0};
  // Until the state equals a fresh one.
  base::Duration reset_after{0};
  // Until `remaining` grows by one; zero when it is at its greatest. When refused, the same as retry_after.
  base::Duration more_after{0};
  // Shaped requests: until the departure. Zero for everything else.
  base::Duration delay{0};
  // The key table was full, and the cell that the rule's newcomers share has answered.
  bool overflow = false;
  // Admitted from units that this process took in advance of Redis (src/redis/prefetch/stock.hpp).
  bool in_advance = false;
  // The limit as it stood, where it moves with the key (adaptive_concurrency); zero where quota() says it.
  // Narrow, to share a word with `overflow`: outcomes are on the hot path.
  std::uint32_t limit = 0;
  // Of a bucket with a lease: where its slots begin (src/redis/prefetch/lot.hpp), for they are given back
  // where they are.
  Ticks slots_begin = 0;
  base::TimePoint debited_at{};  // of what was taken in advance: when Redis was charged for it
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace weir::limit
