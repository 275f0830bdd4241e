// weir import: translates a configuration of nginx, or Ingresses of Kubernetes.
#pragma once

#include <string>

namespace weir::cli {

struct ImportOptions {
  std::string file;    // the configuration of nginx; a file of Ingresses if it ends in .yaml, .yml or .json
  std::string output;  // empty: standard output
  bool force = false;  // overwrite the output
};

// Writes the configuration of weir. Reports on standard error the directives or annotations that weir cannot
// translate. Returns 0 if weir accepts the configuration; 1 if weir rejects it, or if the output cannot be
// written; 2 if the file cannot be read.
[[nodiscard]] int run_import(const ImportOptions& options);

}  // namespace weir::cli
