// Values of a wrong type or in another spelling, and the value to write instead.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// Returns the value as TOML writes it; empty of a table or a date.
[[nodiscard]] std::string as_toml(const Node& node);
// A text, or the digits of a whole number; empty of all else.
[[nodiscard]] std::string as_plain_text(const Node& node);

// Returns the value that the key takes in place of `text`, as TOML writes it, such as "\"10/s\"" for "10 / s"
// or "true" for "yes". Empty where nothing is known.
[[nodiscard]] std::string fitting_text(const KeySpec& spec, std::string_view text);
// The same for a value that TOML could read.
[[nodiscard]] std::string fitting_value(const KeySpec& spec, const Node& entry);
// Returns some value that the key takes: its default, or a usual one. Empty of a table.
[[nodiscard]] std::string example_value(const KeySpec& spec);
// What another value of that kind is called.
[[nodiscard]] std::string_view noun_of(Kind kind);

// Returns the keys that lead to the value at `at` in a line, from the outermost inline table on.
[[nodiscard]] std::vector<std::string> keys_before(std::string_view line, std::size_t at);
// Returns the key at the end of the path; null where there is none.
[[nodiscard]] const KeySpec* find_key(const TableSpec& table, std::span<const std::string> path) noexcept;
// The same of a path below a key that holds tables.
[[nodiscard]] const KeySpec* find_below(const KeySpec& key, std::span<const std::string> path) noexcept;

}  // namespace weir::app
