// Writes numbers without an exponent: 28800 and 0.5, never 2.88E4. Pure.
#pragma once

#include <string>

namespace weir::base {

// Returns the shortest decimal digits that parse to the same number. Returns "null" for infinity and NaN.
[[nodiscard]] std::string plain_number(double number);

}  // namespace weir::base
