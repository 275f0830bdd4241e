// Time as weir counts it: whole microseconds, never floating point.
//
// `TimePoint` is microseconds since the Unix epoch. Who the authority for "now" is depends on the store (a
// steady clock anchored at start for state in process, the server's TIME for Redis), so no function below the
// shell reads a clock: it takes `now` as an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::base {

using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::sys_time<Duration>;

inline constexpr Duration kForever = Duration::max();

// Whole seconds, rounded up: what a client that sleeps so long may rely on.
[[nodiscard]] constexpr std::int64_t ceil_seconds(Duration d) noexcept {
  constexpr std::int64_t kMicros = 1'000'000;
  return d.count() / kMicros + (d.count() % kMicros > 0 ? 1 : 0);
}

}  // namespace weir::base
