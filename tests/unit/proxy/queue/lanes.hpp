// Two lanes (queues of one key each) and some times, for tests of the queue.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"

#include <chrono>
#include <cstdint>

namespace weir::proxy {

inline constexpr limit::Key kLane{1, 1};
inline constexpr limit::Key kOtherLane{2, 1};

inline base::TimePoint at(std::int64_t second) {
  return base::TimePoint(std::chrono::seconds(1'000 + second));
}

}  // namespace weir::proxy
