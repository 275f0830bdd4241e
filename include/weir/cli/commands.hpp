// Functions that run single commands of weir. Each returns the exit code of the process: 0 for success, 1 for
// failure.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/config/settings.hpp"

namespace weir::cli {

// Options of `weir echo`, a small upstream server for demos and tests.
struct EchoOptions {
  base::Endpoint listen;
  unsigned workers = 1;
  base::Duration delay{0};  // pause before each response
  bool grpc = false;        // true: speaks gRPC instead of HTTP/1.1
};
// Serves until a signal ends the process.
int run_echo(const EchoOptions& options);

// Asks the admin listener whether weir works (GET /healthz) or, if `ready` is true, whether it is ready for
// requests (GET /readyz). Returns 0 if a response with status 200 arrives within two seconds. Otherwise
// returns 1 and prints the reason on standard error. Used by health checks of containers.
int run_health(const base::Endpoint& admin, bool ready);

// Checks whether rules can keep their state in the Redis of the configuration, and prints the findings.
// Returns 0 if rules can use this Redis, even if there are warnings. Returns 1 if rules cannot use it, or if
// Redis does not answer. `json`: prints one line of JSON. REQUIRES settings.state.redis.
int run_redis_check(const config::Settings& settings, bool json);

}  // namespace weir::cli
