// Runs weir as a server (`weir run`).
#pragma once

#include <string>

namespace weir::server {

// Reads the configuration, serves until SIGTERM or SIGINT, then drains and returns the exit code. SIGHUP
// reloads the configuration. Throws ConfigError if the configuration is wrong at the start. If weir cannot
// start for another reason, prints the reason and returns 1.
int run(const std::string& file);

}  // namespace weir::server
