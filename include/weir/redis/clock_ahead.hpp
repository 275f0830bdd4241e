// Computes how far one Redis server's clock is ahead of another Redis server's clock.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::redis {

// Returns `clock` minus `bill`, in microseconds. `clock`: the time of the Redis server that decided one
// charge. `bill`: the time to which all outcomes of the bill (the charges of one request) refer. The result
// is clamped to about ±35 minutes, because it goes into the 32 bits of Outcome::ahead.
[[nodiscard]] inline std::int32_t clock_ahead(base::TimePoint clock, base::TimePoint bill) noexcept {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>((clock - bill).count(), Limits::min(), Limits::max()));
}

}  // namespace weir::redis
