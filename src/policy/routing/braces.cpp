#include "policy/routing/braces.hpp"

#include <utility>

namespace weir::policy {

base::Result<std::vector<BracedPiece>> split_braces(std::string_view text) {
  std::vector<BracedPiece> pieces;
  BracedPiece piece;
  while (!text.empty()) {
    const char c = text.front();
    const bool doubled = text.starts_with("{{") || text.starts_with("}}");
    if (doubled || (c != '{' && c != '}')) {
      piece.text += c;
      text.remove_prefix(doubled ? 2 : 1);
      continue;
    }
    const auto end = c == '{' ? text.find_first_of("{}", 1) : std::string_view::npos;
    if (end == std::string_view::npos || text[end] != '}')
      return base::Error{"a brace has no partner; expected a placeholder such as {host}, or " +
                         std::string(c == '{' ? "{{" : "}}") + " for the character itself"};
    if (end == 1)
      return base::Error{"{} has no name; expected a placeholder such as {host}, or {{}} for the characters"};
    piece.name = text.substr(1, end - 1);
    pieces.push_back(std::exchange(piece, {}));
    text.remove_prefix(end + 1);
  }
  if (!piece.text.empty() || pieces.empty()) pieces.push_back(std::move(piece));
  return pieces;
}

}  // namespace weir::policy
