// weir import: translates a configuration of nginx.
#pragma once

#include <string>

namespace weir::cli {

struct ImportOptions {
  std::string file;    // the configuration of nginx
  std::string output;  // empty: standard output
  bool force = false;  // overwrite the output
};

// Prints the configuration of weir, and on standard error what of the file has no equal. Returns 0 if weir
// accepts the result; 1 if it does not, or if the output cannot be written; 2 if the file cannot be read.
[[nodiscard]] int run_import(const ImportOptions& options);

}  // namespace weir::cli
