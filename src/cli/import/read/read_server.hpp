// Reads the nginx directive `server` and its locations.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads a server block. `outer` and `tls`: the settings that the server inherits from the http block.
void read_server(const Directive& directive, const Scope& outer, const Tls& tls, ImportState& state);

// Reads a TLS setting of an http or server block. Returns false if the directive is no TLS setting. The first
// certificate of a block replaces the inherited certificates. `own`: set to true once the block has a
// certificate of its own.
[[nodiscard]] bool read_tls(const Directive& directive, Tls& tls, bool& own, ImportState& state);

// Reads a setting that weir has only once, for the whole process. Returns false if the directive is no such
// setting.
[[nodiscard]] bool read_process_key(const Directive& directive, ImportState& state);

}  // namespace weir::cli::nginx
