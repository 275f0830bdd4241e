// Changes of the path that weir forwards to the servers of a route. Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/policy/routing/patterns.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Makes a new path from a path that matches a regular expression. In the new path, "{1}" stands for the first
// group of the expression, and "{0}" for the whole match.
class PathPattern {
 public:
  // `pattern`: a regular expression without "~". `to`: the new path. The error says what to write in place of
  // `to`. REQUIRES: fault_of_expression(pattern) is empty.
  [[nodiscard]] static base::Result<PathPattern> parse(std::string_view pattern, std::string_view to);
  // Writes the new path to `out`, not yet in normal form. Returns false if the expression is not found in the
  // path.
  [[nodiscard]] bool apply(std::string_view path, std::string& out) const;
  // Returns true if a server may find a dot segment ("..") in the new path. Returns true in case of doubt.
  [[nodiscard]] bool may_make_dots(std::string_view path) const noexcept;
  // Returns the constant text with which all new paths begin.
  [[nodiscard]] std::string_view beginning() const noexcept { return to_.front().text; }
  [[nodiscard]] std::string describe() const;

 private:
  struct Piece {
    std::string text;
    std::optional<std::size_t> group;  // the group that follows the text; nullopt: none
  };
  TextMatch pattern_;
  std::vector<Piece> to_;
  std::string text_;          // the new path as it was given to parse()
  std::size_t elements_ = 1;  // the highest group number in `to_`, plus one
};

struct PathRewrite {
  std::string strip;  // "/api": the prefix that is removed from "/api" and "/api/…"; empty: none
  std::string add;    // "/v2": put before the path; empty: nothing
  std::optional<PathPattern> pattern;

  // Computes the path to forward. `path`: the path in normal form. Writes the new path to `out`, which
  // begins with one slash and is in normal form. Returns false if the path does not begin with `strip`, or
  // has no match for the expression. weir then forwards the path as it was received.
  [[nodiscard]] bool apply(std::string_view path, std::string& out) const;

  // Returns true if the new path may lie outside the prefix that the configuration gives it: `add`, or the
  // constant beginning of the pattern's new path. This is so in two cases:
  // * the new path had a dot segment before it was put into normal form;
  // * `all_servers` is true, and a server may read the new path as a path without the prefix
  //   (http/path_interpretations.hpp).
  [[nodiscard]] bool leaves_target(std::string_view path, bool all_servers) const;

 private:
  [[nodiscard]] bool make(std::string_view path, std::string& out) const;
};

// Returns what is wrong with the regular expression of a PathPattern; empty if it is valid.
[[nodiscard]] std::string fault_of_expression(std::string_view pattern);

// Returns what is wrong with a prefix to strip or to add; empty if it is valid. A prefix is a path in normal
// form without a slash at its end.
[[nodiscard]] std::string fault_of_prefix(std::string_view prefix);

}  // namespace weir::policy
