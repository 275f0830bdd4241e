// weir check: checks a configuration, and shows how weir understands it.
#pragma once

#include <string>

namespace weir::cli {

struct CheckOptions {
  bool strict = false;   // a warning makes the command fail
  bool json = false;     // print JSON
  bool resolve = false;  // also look up names
};

// Returns the exit status. Throws config::ConfigError if the configuration has mistakes; with `json`, prints
// them first.
[[nodiscard]] int run_check(const std::string& file, const CheckOptions& options);

}  // namespace weir::cli
