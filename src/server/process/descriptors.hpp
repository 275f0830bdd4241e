// How many descriptors the system lets this process have.
#pragma once

#include <cstddef>
#include <string>

namespace weir::app {

struct Descriptors {
  std::size_t connections;  // as many as can be had, and no more than are wanted
  std::string warning;      // a sentence for the log where that is fewer
};

// Raises the soft limit (RLIMIT_NOFILE) to the hard one. Each connection may need one more to an upstream: so
// many alone are taken that there is one for each, and requests do not fail for those who only came.
[[nodiscard]] Descriptors raise_descriptor_limit(std::size_t max_connections);

}  // namespace weir::app
