// Splits texts with placeholders in braces.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

struct BracedPiece {
  std::string text;  // a constant text; "{{" and "}}" have become braces
  std::string name;  // the name in the braces behind the text; empty: the end of the whole text
};

// Splits "a{b}c" into ("a", "b") and ("c", ""). The error names a brace without its partner.
[[nodiscard]] base::Result<std::vector<BracedPiece>> split_braces(std::string_view text);

}  // namespace weir::policy
