// `${NAME}` and `${NAME:-text}` in the values of a configuration.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::app {

// The text with each reference replaced by the variable's value, once: what comes in is not looked at again.
// ":-text" stands in where the variable is unset or empty, as in a shell. An error names the variable, never
// a value.
[[nodiscard]] base::Result<std::string> expand_environment(std::string_view text);

}  // namespace weir::app
