// The queue's inputs and outputs. Plain values.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/policy/route.hpp"

#include <cstdint>

namespace weir::proxy {

// An instant at which one request of a lane may leave.
struct Departure {
  base::TimePoint at{};        // by this weir's clock
  base::TimePoint promised{};  // the same instant by the clock of the store that promised it
  limit::Charge charge{};      // what was charged for it; its key names the lane
  bool in_redis = false;       // the store that promised it is Redis, else the key table
  bool overflow = false;       // charged to the key table's overflow cell
  // How many units may wait in a lane that all clients share; 0 for a lane of one client.
  std::uint64_t shared_places = 0;
};

// A request that the limiter refused. It may displace a request that waits.
struct Newcomer {
  limit::Key lane;
  limit::Key client;
  policy::Priority priority;
  limit::Cost cost;
  std::uint64_t most;  // how many places its client may have in the lane
};

}  // namespace weir::proxy
