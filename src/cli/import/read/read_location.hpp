// Reads `location`.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads a location and the locations within it into the server.
void read_location(const Directive& directive, const Scope& outer, Server& server, ImportState& state);

// Returns what `return` answers. `server`: whose listeners and names are read already.
[[nodiscard]] Action read_return(const Directive& directive, const Server& server, Notes& notes);

}  // namespace weir::cli::nginx
