// Reads `upstream`.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads an upstream block into the result. Replaces no earlier upstream of the same name.
void read_upstream(const Directive& directive, ImportState& state);

// Returns an address of nginx as weir writes it: "host" gets the port, and "unix:/path" stays.
[[nodiscard]] std::string address_with_port(const std::string& address, const char* port);

}  // namespace weir::cli::nginx
