// What a queue is asked for and what it gives. Plain values.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/policy/route.hpp"

#include <cstdint>

namespace weir::proxy {

// An instant at which one request of a lane may leave.
struct Departure {
  base::TimePoint at{};        // in our time
  base::TimePoint promised{};  // the same in the time of the store that promised it
  limit::Charge charge{};      // what was charged for it; its key names the lane
  bool in_redis = false;       // the store; else the key table
  bool overflow = false;       // of the key table: the overflow cell
  // How many units may wait in the lane, where it is everybody's; 0 where it is some client's.
  std::uint64_t shared_places = 0;
};

// One whom the limiter refused, and who may have another's place.
struct Newcomer {
  limit::Key lane;
  limit::Key client;
  policy::Priority priority;
  limit::Cost cost;
  std::uint64_t most;  // places that its client may have in the lane
};

}  // namespace weir::proxy
