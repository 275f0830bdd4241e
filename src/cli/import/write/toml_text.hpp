// Writes tables and lists of TOML. Values are in TOML already. Pure.
#pragma once

#include "cli/import/write/layout.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

// Returns `{ a = 1, b = 2 }`.
[[nodiscard]] std::string inline_table(const TomlPairs& pairs);

// Returns a list of texts: `["a", "b"]`.
[[nodiscard]] std::string text_list(const std::vector<std::string>& texts);

// Returns the text alone if there is one, otherwise a list.
[[nodiscard]] std::string one_or_list(const std::vector<std::string>& texts);

// Returns a line for each pair.
[[nodiscard]] std::string lines_of(const TomlPairs& pairs);

}  // namespace weir::cli::nginx
