// Runs weir as a server (`weir run`).
#pragma once

#include <string>

namespace weir::server {

// Reads the configuration, serves until SIGTERM or SIGINT, then drains and returns the exit code. SIGHUP
// reloads the configuration. Throws ConfigError if the configuration is wrong at the start.
int run(const std::string& file);

}  // namespace weir::server
