// Reads all that weir import understands of an nginx configuration.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// Returns the translated parts, and adds a note for each directive that cannot be translated. `folder`: the
// absolute folder of the configuration. `directives` may also be the content of an http block, as in a file
// of conf.d or sites-enabled.
[[nodiscard]] Configuration read_configuration(const Directives& directives, const std::string& folder,
                                               Notes& notes);

}  // namespace weir::cli::nginx
