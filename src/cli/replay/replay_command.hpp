// `weir replay`: applies other rules to recorded traffic, and prints the result for people or as JSON.
#pragma once

#include "weir/config/settings.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

struct ReplayOptions {
  std::vector<std::string> files;  // access logs; "-" is standard input; gzip files are decompressed
  bool json = false;
  std::size_t clients = 10;  // number of clients to list for each rule
};

// Returns 0 after a replay. Returns 1 if a file cannot be read or has no usable line. Returns 2 if `files`
// names a file twice.
int run_replay(const config::Settings& settings, const ReplayOptions& options);

}  // namespace weir::cli
