// The distance between two readings of Redis servers' clocks.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::redis {

// Returns how far `clock`, the Redis clock that decided an answer, is ahead of `bill`, the time of the whole
// bill. The result is Outcome::ahead, in microseconds. That field has 32 bits, so the distance is clamped to
// about 35 minutes.
[[nodiscard]] inline std::int32_t clock_ahead(base::TimePoint clock, base::TimePoint bill) noexcept {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>((clock - bill).count(), Limits::min(), Limits::max()));
}

}  // namespace weir::redis
