// weir import: translates a configuration of nginx.
#pragma once

#include <string>

namespace weir::cli {

struct ImportOptions {
  std::string file;    // the configuration of nginx
  std::string output;  // empty: standard output
  bool force = false;  // overwrite the output
};

// Writes the configuration of weir, and reports on standard error which directives have no equal. Returns 0
// if weir accepts the configuration; 1 if weir rejects it, or if the output cannot be written; 2 if the file
// of nginx cannot be read.
[[nodiscard]] int run_import(const ImportOptions& options);

}  // namespace weir::cli
