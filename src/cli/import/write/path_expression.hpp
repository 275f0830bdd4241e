// Translates the regular expression of an nginx location for use in weir. Pure.
//
// nginx applies the expression to the decoded path. weir applies it to the normal form of the path, which
// writes blanks and other characters as %XX.
#pragma once

#include <string>
#include <string_view>

namespace weir::cli::nginx {

struct PathExpression {
  std::string pattern;  // in RE2's notation
  bool exact = true;    // false: the pattern may miss paths that match in nginx
  std::string start;    // a prefix of all paths that match in nginx, in weir's normal form; may be empty
};

[[nodiscard]] PathExpression path_expression(std::string_view pcre);

}  // namespace weir::cli::nginx
