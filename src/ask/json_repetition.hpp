// Finds a member that an object has more than once. Parsers disagree on which of the two counts, so a program
// in between may have read the other one. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::ask {

// Returns the name of the first member that repeats another one of its object (RFC 7493 §2.3). REQUIRES: the
// text is valid JSON whose nesting is bounded.
[[nodiscard]] std::optional<std::string> repeated_member(std::string_view text);

}  // namespace weir::ask
