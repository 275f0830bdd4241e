// The number of file descriptors that the system allows this process.
#pragma once

#include <cstddef>
#include <string>

namespace weir::server {

struct Descriptors {
  std::size_t connections;  // at most the wanted number
  std::string warning;      // a sentence for the log if fewer than wanted
};

// Raises the soft limit (RLIMIT_NOFILE) to the hard limit. Each connection reserves two file descriptors,
// because it may need another one to an upstream. Without that, requests would fail while idle clients hold
// the descriptors.
[[nodiscard]] Descriptors raise_descriptor_limit(std::size_t max_connections);

}  // namespace weir::server
