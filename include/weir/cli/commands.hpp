// The commands of the command line. Each returns the exit code of the process: 0 success, 1 failure.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/config/settings.hpp"

namespace weir::cli {

// A small upstream for demos, tests and load.
struct EchoOptions {
  base::Endpoint listen;
  unsigned workers = 1;
  base::Duration delay{0};  // before each response
};
int run_echo(const EchoOptions& options);

// Sends GET /healthz to the admin listener. Returns 0 if the response within two seconds is 200. Otherwise
// returns 1 and prints the reason on standard error. Meant for a container's HEALTHCHECK.
int run_health(const base::Endpoint& admin);

// Checks whether rules can keep their state in the Redis of the configuration, and prints the findings.
// Returns 0 if they can, with or without warnings. Returns 1 if they cannot or Redis does not answer. `json`:
// prints one line of JSON. REQUIRES settings.state.redis.
int run_redis_check(const config::Settings& settings, bool json);

}  // namespace weir::cli
