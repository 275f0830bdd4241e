// `${NAME}` and `${NAME:-text}` in the values of a configuration.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::config {

// Returns the text with each reference replaced by the variable's value. The value itself is not expanded.
// "text" behind ":-" replaces a variable that is unset or empty, as in a shell. The error names the variable
// and never shows a value.
[[nodiscard]] base::Result<std::string> expand_environment(std::string_view text);

}  // namespace weir::config
