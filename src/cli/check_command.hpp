// weir check: checks a configuration, and shows how weir understands it.
#pragma once

#include <string>

namespace weir::cli {

struct CheckOptions {
  bool strict = false;   // true: a warning makes the command fail
  bool json = false;     // true: print JSON
  bool resolve = false;  // true: also look up names
};

// Returns the exit status. Throws config::ConfigError if the configuration has mistakes. With `json`, prints
// the mistakes first.
[[nodiscard]] int run_check(const std::string& file, const CheckOptions& options);

}  // namespace weir::cli
