// Functions that split lists without copying: "a=1&b=2", "a=1; b=2", "203.0.113.7, 10.0.0.1".
#pragma once

#include <string_view>

namespace weir::policy {

// Removes the piece before the first `separator` from the front of `rest`, and returns the piece. Also
// removes the separator.
[[nodiscard]] inline std::string_view take_piece(std::string_view& rest, char separator) noexcept {
  const auto end = rest.find(separator);
  const auto piece = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return piece;
}

// Returns the text without white space (RFC 9110 §5.6.3) at its beginning and end.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

struct NameValue {
  std::string_view name;
  std::string_view value;  // empty if the piece has no '='
};

[[nodiscard]] inline NameValue name_value(std::string_view pair) noexcept {
  const auto equals = pair.find('=');
  if (equals == std::string_view::npos) return {pair, {}};
  return {pair.substr(0, equals), pair.substr(equals + 1)};
}

}  // namespace weir::policy
