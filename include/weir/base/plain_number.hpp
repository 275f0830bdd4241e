// Numbers as people write them: 28800, 0.5, never 2.88E4. Pure.
#pragma once

#include <string>

namespace weir::base {

// Returns the shortest decimal digits, without an exponent, that read back as the same number. A number that
// is not finite has no such digits: "null".
[[nodiscard]] std::string plain_number(double number);

}  // namespace weir::base
