// Time in whole microseconds, never in floating point.
//
// A TimePoint counts microseconds since the Unix epoch. Limits in this process use a steady clock that was
// set at start; limits in Redis use the TIME of the Redis server. Functions of pure rooms therefore read no
// clock, and take `now` as an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::base {

using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::sys_time<Duration>;

inline constexpr Duration kForever = Duration::max();

// Returns the duration in whole seconds, rounded up. A client that waits for this many seconds does not retry
// too early.
[[nodiscard]] constexpr std::int64_t ceil_seconds(Duration d) noexcept {
  constexpr std::int64_t kMicros = 1'000'000;
  return d.count() / kMicros + (d.count() % kMicros > 0 ? 1 : 0);
}

}  // namespace weir::base
