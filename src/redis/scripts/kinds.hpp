// The kinds of lines that the scripts charge and refund. C++ and Lua share this list: cmake/Embed.cmake
// replaces "Kind.Gcra" and the other names in the scripts with these numbers. Some of the numbers are the
// first byte of a state in Redis, so a kind's number must never change.
#pragma once

#include <cstdint>

namespace weir::redis {

enum class Kind : std::uint8_t {
  Gcra = 1,            // token bucket, GCRA, leaky bucket
  SteppedBucket = 2,   // token bucket with refill = "stepwise"
  FixedWindow = 3,     // fixed windows that all have the same length
  CalendarWindow = 4,  // fixed windows of a calendar; only in charge.lua; the state has kind FixedWindow
  SlidingWindow = 5,   // sliding window by weight
  Log = 6,             // sliding log, and sliding window with buckets
  Permits = 7,         // concurrency limit
  Reset = 8,           // only in refund.lua: resets the key
  GapGcra = 9,         // the same as Gcra, for a rule with `lease`; the state may have gaps (free time slots)
  Penalty = 10,        // not a charge: the penalty of the charge in the line before; only in charge.lua
};

}  // namespace weir::redis
