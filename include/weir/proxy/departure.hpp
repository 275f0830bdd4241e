// The inputs of the queue (weir/proxy/queue.hpp). Plain values.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/policy/route.hpp"

#include <cstdint>

namespace weir::proxy {

// A departure: the instant at which a leaky bucket lets one request of its queue (the lane) proceed.
struct Departure {
  base::TimePoint at{};        // the instant by this weir's clock
  base::TimePoint promised{};  // the same instant by the clock of the store that promised it
  limit::Charge charge{};      // the charge for this departure; the charge's key names the lane
  bool in_redis = false;       // true: promised by Redis; false: by the key table
  // True: the charge was made to the overflow cell, the counter that keys share while the key table is full.
  bool overflow = false;
  // How many units may wait in the lane if all clients share it; 0 for a lane of one client.
  std::uint64_t shared_max_waiting = 0;
};

// A request that the lane's limiter refused, but that may take the place of a waiting request.
struct Newcomer {
  limit::Key lane;
  limit::Key client;
  policy::Priority priority;
  limit::Cost cost;
  std::uint64_t most;  // how many requests of its client may wait in the lane
};

}  // namespace weir::proxy
