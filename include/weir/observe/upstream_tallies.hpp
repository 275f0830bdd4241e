// The counters of one upstream, for one worker.
#pragma once

#include "weir/observe/histogram.hpp"
#include "weir/observe/tally.hpp"

namespace weir::observe {

struct UpstreamTallies {
  Tally connects;   // connections that weir opened
  Tally failures;   // connects that were refused or timed out, and exchanges whose connection broke
  Tally errors;     // answers with status 5xx
  Tally oversized;  // answers whose head was too large to forward
  Tally reused;     // requests that used an idle connection
  Tally prompted;   // requests whose client got a 100 Continue from weir, because the server sent none
  Tally retries;    // requests that were sent again
  Gauge waiting;    // requests that are waiting now, because all servers have their maximum of requests
  Tally queued;     // requests that have waited because all servers had their maximum of requests
  Tally crowded;    // requests refused because all servers had their maximum of requests
  Tally denied;     // requests that were not sent again, because the retry budget was used up
  // For rules with `adapt` (limit::Answers). `attempts`: attempts that were answered or failed.
  // `attempts_failed`: attempts that failed.
  Tally attempts, attempts_failed;
  // The time of each attempt from the sent request to the head of the answer, or until weir gave up waiting.
  Histogram seconds;
  Gauge in_flight;  // requests that weir is forwarding, including those that wait for a server; and tunnels
  Tally paused;     // requests that weir answered, because the upstream had asked for a pause
};

}  // namespace weir::observe
