// Writes tables and lists of TOML. The arguments are in TOML's notation already. Pure.
#pragma once

#include "cli/import/write/layout.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

// Returns `{ a = 1, b = 2 }`.
[[nodiscard]] std::string inline_table(const TomlPairs& pairs);

// Returns a list of texts: `["a", "b"]`.
[[nodiscard]] std::string text_list(const std::vector<std::string>& texts);

// Returns the text itself if `texts` has only one, otherwise a list.
[[nodiscard]] std::string one_or_list(const std::vector<std::string>& texts);

// Returns a line for each pair.
[[nodiscard]] std::string lines_of(const TomlPairs& pairs);

}  // namespace weir::cli::nginx
