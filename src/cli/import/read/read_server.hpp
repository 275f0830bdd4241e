// Reads `server` and its locations.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Reads a server block. `outer` and `tls`: the settings of http.
void read_server(const Directive& directive, const Scope& outer, const Tls& tls, ImportState& state);

// Reads a setting of TLS of http or a server. Returns false if the directive is no such setting. `own`: true
// once this block has named a certificate, which replaces the inherited ones.
[[nodiscard]] bool read_tls(const Directive& directive, Tls& tls, bool& own, ImportState& state);

// Reads a setting that weir has once for the whole process. Returns false if the directive is no such
// setting.
[[nodiscard]] bool read_process_key(const Directive& directive, ImportState& state);

}  // namespace weir::cli::nginx
