// The kinds of lines that the scripts charge and amend. This is the one list for both sides:
// cmake/Embed.cmake puts the numbers in place of "Kind.Gcra" and so on in the scripts. Redis keeps some
// numbers as the first byte of a state, so a number never changes its meaning.
#pragma once

#include <cstdint>

namespace weir::redis {

enum class Kind : std::uint8_t {
  Gcra = 1,            // token bucket, GCRA, leaky bucket
  SteppedBucket = 2,   // a token bucket with refill = "stepwise"
  FixedWindow = 3,     // of one length
  CalendarWindow = 4,  // charge.lua only; its state is that of FixedWindow
  SlidingWindow = 5,   // by weight
  Log = 6,             // sliding logs, and sliding windows with buckets
  Permits = 7,         // concurrency
  Reset = 8,           // refund.lua only: resets the whole key
  GapGcra = 9,         // Gcra with a state that has gaps, for a rule with a lease
};

}  // namespace weir::redis
