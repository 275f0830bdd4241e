// Reads all that weir import understands of an nginx configuration.
#pragma once

#include "cli/import/read/read_scope.hpp"

namespace weir::cli::nginx {

// `folder`: the absolute folder of the configuration. The directives may also be those of an http block, as
// in a file of conf.d or sites-enabled.
[[nodiscard]] Configuration read_configuration(const Directives& directives, const std::string& folder,
                                               Notes& notes);

}  // namespace weir::cli::nginx
