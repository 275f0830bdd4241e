// The counters of one route, for one worker: 4,192 bytes.
#pragma once

#include "weir/observe/histogram.hpp"
#include "weir/observe/tally.hpp"

#include <array>
#include <cstddef>

namespace weir::observe {

struct RouteTallies {
  static constexpr std::size_t kStatusSlots = 502;

  // Ended requests. Counters::requests() finds the slot of a status.
  std::array<Tally, kStatusSlots> statuses;
  // For requests that weir sent to a server: the time from the end of the head to the end of the answer. For
  // a tunnel: the time until it opens.
  Histogram seconds;
  Gauge in_flight;  // requests that have not ended, including those in a queue; and open tunnels
};

}  // namespace weir::observe
