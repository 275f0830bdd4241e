// For annotations of ingress-nginx that weir import does not translate: which keys of weir to use instead.
#pragma once

#include <string_view>

namespace weir::cli::nginx {

// Returns a sentence for the report of weir import. Returns an empty text if the annotation has no meaning
// for weir, such as `proxy-buffering`.
[[nodiscard]] std::string_view hint_of_annotation(std::string_view name);

}  // namespace weir::cli::nginx
