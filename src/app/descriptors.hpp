// How many descriptors the system lets this process have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace weir::app {

// Raises the soft limit (RLIMIT_NOFILE) to the hard one. A sentence for the log where so many connections,
// each of which may need one more to an upstream, could still not be had.
[[nodiscard]] std::optional<std::string> raise_descriptor_limit(std::size_t max_connections);

}  // namespace weir::app
