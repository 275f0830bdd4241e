// How far two readings of the clocks of Redis servers are apart.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::redis {

// Returns how far the clock behind an answer is ahead of that of its bill (Outcome::ahead), in microseconds.
// That field has 32 bits: clocks that are more than 35 minutes apart count as 35 minutes apart.
[[nodiscard]] inline std::int32_t clock_ahead(base::TimePoint clock, base::TimePoint bill) noexcept {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>((clock - bill).count(), Limits::min(), Limits::max()));
}

}  // namespace weir::redis
