// The counters of one upstream, for one worker.
#pragma once

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
  Tally crowded;    // requests that were refused because all servers had their maximum of requests
  Tally denied;     // requests that were not sent again, because the retry budget was used up
  // For rules with `adapt` (limit::Answers): attempts that were answered or failed, those that failed, those
  // whose time counts, and the sum of these times in microseconds.
  Tally attempts, attempts_failed, attempts_measured, attempts_micros;
  Tally paused;  // requests that weir answered itself, because the upstream had asked for a pause
};

}  // namespace weir::observe
