// Translates the directives of an nginx configuration, or Ingresses, into a configuration of weir. Pure.
#pragma once

#include "cli/import/read/notes.hpp"
#include "cli/import/syntax/directive.hpp"

#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::cli::nginx {

// Returns a configuration of weir. Adds a note for each directive that weir cannot translate exactly. The
// error says why there is nothing to translate. `folder`: the absolute folder of the nginx configuration.
[[nodiscard]] base::Result<std::string> translate(const Directives& directives, const std::string& folder,
                                                  Notes& notes);

// Translates Ingresses of Kubernetes with annotations of ingress-nginx into a configuration of weir. `text`:
// YAML or JSON; `file`: the name of the text in the report.
[[nodiscard]] base::Result<std::string> translate_ingresses(std::string_view text, const std::string& file,
                                                            Notes& notes);

}  // namespace weir::cli::nginx
