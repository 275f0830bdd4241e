// Suggests a value to write in place of one with a wrong type or spelling.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// Returns the value in TOML syntax. Empty for a table or a date.
[[nodiscard]] std::string as_toml(const Node& node);
// Returns a text, or the digits of a whole number. Empty for any other value.
[[nodiscard]] std::string as_plain_text(const Node& node);

// Returns the value that the key takes in place of `text`, in TOML syntax: "\"10/s\"" for "10 / s", "true"
// for "yes". Empty if no such value is known.
[[nodiscard]] std::string fitting_text(const KeySpec& spec, std::string_view text);
// Does the same for a value that TOML could read.
[[nodiscard]] std::string fitting_value(const KeySpec& spec, const Node& entry);
// Returns a value that the key takes: its default, or a usual one. Empty for a table.
[[nodiscard]] std::string example_value(const KeySpec& spec);
// Returns a noun for a value of the kind, as in "or another duration".
[[nodiscard]] std::string_view noun_of(Kind kind);

// Returns the keys that lead to the value at `at` in a line, starting with the outermost inline table.
[[nodiscard]] std::vector<std::string> keys_before(std::string_view line, std::size_t at);
// Returns the key at the end of the path; null if there is none.
[[nodiscard]] const KeySpec* find_key(const TableSpec& table, std::span<const std::string> path) noexcept;
// Does the same for a path below a key that holds tables.
[[nodiscard]] const KeySpec* find_below(const KeySpec& key, std::span<const std::string> path) noexcept;

}  // namespace weir::config
