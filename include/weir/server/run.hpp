// What the commands of the command line do. Each returns the exit code of the process: 0 done, 1 could not do
// it.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/config/settings.hpp"

#include <string>

namespace weir::app {

// Reads the configuration and serves until SIGTERM or SIGINT, then drains; SIGHUP reads it anew. Throws
// ConfigError where it is wrong at the start.
int run(const std::string& file);

// A small upstream for demos, tests and load.
struct EchoOptions {
  base::Endpoint listen;
  unsigned workers = 1;
  base::Duration delay{0};  // before each answer
};
int run_echo(const EchoOptions& options);

// Asks GET /healthz of the admin listener there; 0 when it answers 200 within two seconds, else 1 and the
// reason on standard error. For a container's HEALTHCHECK.
int run_health(const base::Endpoint& admin);

// Asks the Redis of a configuration whether rules can keep their state there, and prints what it finds. 0:
// they can, whatever the warnings; 1: they cannot, or nobody answers. `json`: prints it as one line of JSON.
// REQUIRES settings.state.redis.
int run_redis_check(const Settings& settings, bool json);

}  // namespace weir::app
