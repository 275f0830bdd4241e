// The whole translation, without files. Pure.
#pragma once

#include "cli/import/read/notes.hpp"
#include "cli/import/syntax/directive.hpp"

#include "weir/base/result.hpp"

#include <string>

namespace weir::cli::nginx {

// Returns a configuration of weir, and adds to `notes` what of the directives has no equal. The error says
// why there is nothing to translate. `folder`: the absolute folder of the configuration of nginx.
[[nodiscard]] base::Result<std::string> translate(const Directives& directives, const std::string& folder,
                                                  Notes& notes);

}  // namespace weir::cli::nginx
