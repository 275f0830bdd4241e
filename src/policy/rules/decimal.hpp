// Numbers as JSON writes them, in plain digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// Returns the number without its exponent: "5e0" is "5", "1.5e1" is "15", "2.5E-1" is "0.25". Every digit is
// kept, but a number beyond 10^64 becomes some other one that large, and one below 10^-64 some other one that
// small. Nullopt where the text has a sign or is no number.
[[nodiscard]] std::optional<std::string> plain_digits(std::string_view text);

}  // namespace weir::policy
