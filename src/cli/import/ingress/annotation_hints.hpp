// Hints at keys of weir in place of annotations of ingress-nginx that weir import does not translate.
#pragma once

#include <string_view>

namespace weir::cli::nginx {

// Returns a sentence for the report. Empty if the annotation has no meaning for weir, such as
// `proxy-buffering`.
[[nodiscard]] std::string_view hint_of_annotation(std::string_view name);

}  // namespace weir::cli::nginx
