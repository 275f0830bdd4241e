// Reads `location`.
#pragma once

#include "cli/import/read/read_scope.hpp"

#include <optional>

namespace weir::cli::nginx {

// Reads a location and the locations within it into the server.
void read_location(const Directive& directive, const Scope& outer, Server& server, Reading& reading);

// Returns what `return` answers. weir has no redirects yet: redirected requests get 404.
[[nodiscard]] Action read_return(const Directive& directive, Notes& notes);

}  // namespace weir::cli::nginx
