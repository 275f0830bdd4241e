// Replaces `${NAME}` and `${NAME:-text}` in the strings of a configuration by the values of environment
// variables.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::config {

// Returns the text with each reference replaced by the variable's value. A reference inside a value is not
// replaced. If the variable is unset or empty, the text after ":-" is used, as in a shell. The error names
// the variable and shows no value.
[[nodiscard]] base::Result<std::string> expand_environment(std::string_view text);

}  // namespace weir::config
