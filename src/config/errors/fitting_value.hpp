// Suggests what to write instead of a value with a wrong type or spelling.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// Returns the node's value in TOML syntax. Returns an empty text for a table or a date.
[[nodiscard]] std::string as_toml(const Node& node);
// Returns the content of a string, or the digits of a whole number. Returns an empty text for any other type.
[[nodiscard]] std::string as_plain_text(const Node& node);

// Returns a value that the key accepts and that `text` probably means, in TOML syntax: "\"10/s\"" for "10 /
// s", "true" for "yes". Returns an empty text if there is no such value.
[[nodiscard]] std::string fitting_text(const KeySpec& spec, std::string_view text);
// Like fitting_text(), but for a value that the TOML parser accepted.
[[nodiscard]] std::string fitting_value(const KeySpec& spec, const Node& entry);
// Returns a value that the key accepts: its default or a usual value. Returns an empty text for a table.
[[nodiscard]] std::string example_value(const KeySpec& spec);
// Returns what a string setting expects, for messages: "a string", or "a share such as "5%"".
[[nodiscard]] std::string_view noun_of_text(const KeySpec& spec);
// Returns a noun for values of this kind, such as "duration" for the message "or another duration".
[[nodiscard]] std::string_view noun_of(Kind kind);

// Returns the keys that lead to the value at offset `at` of a line. The first is the key at the start of the
// line. The keys of inline tables follow.
[[nodiscard]] std::vector<std::string> keys_before(std::string_view line, std::size_t at);
// Returns the setting at the path of keys `path`, which starts in `table`; null if there is none.
[[nodiscard]] const KeySpec* find_key(const TableSpec& table, std::span<const std::string> path) noexcept;
// Like find_key(), but `path` starts in the tables inside `key`.
[[nodiscard]] const KeySpec* find_below(const KeySpec& key, std::span<const std::string> path) noexcept;

}  // namespace weir::config
