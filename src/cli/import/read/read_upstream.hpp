// Reads the nginx directive `upstream`.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads an upstream block into the result. If an earlier block has the same name, keeps the earlier one.
void read_upstream(const Directive& directive, ImportState& state);

// Returns an nginx address in weir's notation: adds the port to "host", and returns "unix:/path" unchanged.
[[nodiscard]] std::string address_with_port(const std::string& address, const char* port);

}  // namespace weir::cli::nginx
