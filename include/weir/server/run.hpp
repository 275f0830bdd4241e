// Runs weir.
#pragma once

#include <string>

namespace weir::server {

// Reads the configuration and serves until SIGTERM or SIGINT, then drains. SIGHUP reads the configuration
// again. Throws ConfigError if the configuration is wrong at the start.
int run(const std::string& file);

}  // namespace weir::server
