// `weir replay`: recorded traffic under a candidate rule set, printed for people or as JSON.
#pragma once

#include "weir/config/settings.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace weir::app {

struct ReplayOptions {
  std::vector<std::string> files;  // access logs; "-" standard input; those that gzip wrote are unpacked
  bool json = false;
  std::size_t clients = 10;  // of each rule
};

// 0: it was replayed; 1: a file cannot be read, or no line of them could be used; 2: one is given twice.
int run_replay(const Settings& settings, const ReplayOptions& options);

}  // namespace weir::app
