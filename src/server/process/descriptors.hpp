// Computes how many connections the system's limit of file descriptors allows.
#pragma once

#include <cstddef>
#include <string>

namespace weir::server {

struct Descriptors {
  std::size_t connections;  // the requested number, or fewer if the system allows fewer
  // a sentence for the log if `connections` is below the requested number; otherwise empty
  std::string warning;
};

// Raises the soft limit of file descriptors (RLIMIT_NOFILE) to the hard limit. Returns how many client
// connections this limit allows. Each client connection reserves two file descriptors, because its requests
// may need a connection to an upstream. Otherwise idle clients could take all file descriptors, and requests
// would fail.
[[nodiscard]] Descriptors raise_descriptor_limit(std::size_t max_connections);

}  // namespace weir::server
