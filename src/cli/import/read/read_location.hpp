// Reads the nginx directive `location`.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads a location and its nested locations, and adds them to `server`. `outer`: the inherited settings.
void read_location(const Directive& directive, const Scope& outer, Server& server, ImportState& state);

// Returns the answer of a `return` directive. The listeners and names of `server` must have been read before.
// Makes the location answer 403 if its guards may refuse requests. A redirect and an error stay: they give
// nothing away.
void close_if_guarded(Location& location);
[[nodiscard]] Action read_return(const Directive& directive, const Server& server, Notes& notes);

}  // namespace weir::cli::nginx
