// Texts for the report of weir import about annotations of ingress-nginx that weir import does not translate.
#pragma once

#include <string_view>

namespace weir::cli::nginx {

// Returns which keys of weir to use instead of the annotation, or why weir does not translate it. Returns an
// empty text if the annotation has no meaning for weir, such as `proxy-buffering`.
[[nodiscard]] std::string_view hint_of_annotation(std::string_view name);

}  // namespace weir::cli::nginx
