// Translates the regular expression of a location for weir's form of paths. Pure.
//
// nginx searches the decoded path. weir searches the normal form, which spells blanks and other signs as %XX.
#pragma once

#include <string>
#include <string_view>

namespace weir::cli::nginx {

struct PathExpression {
  std::string pattern;  // in RE2's notation
  bool exact = true;    // false: the pattern may miss paths that nginx finds
  std::string start;    // all paths that nginx finds begin with this text, in weir's form; may be empty
};

[[nodiscard]] PathExpression path_expression(std::string_view pcre);

}  // namespace weir::cli::nginx
