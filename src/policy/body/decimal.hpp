// Converts JSON numbers to plain digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// Returns the number without an exponent: "5e0" is "5", "1.5e1" is "15", "2.5E-1" is "0.25". Keeps all
// digits. For a number above 10^64, the result may be any other number above 10^64. For a number below
// 10^-64, the result may be any other number below 10^-64. Returns nullopt if the text has a sign or is not a
// number.
[[nodiscard]] std::optional<std::string> plain_digits(std::string_view text);

}  // namespace weir::policy
