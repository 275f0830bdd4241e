// Recognises settings in the spelling of other proxies, and suggests the line to write instead.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <string>
#include <string_view>

namespace weir::config {

// Returns advice for a key that weir does not have in this table, such as: write limit = "10/s". Returns an
// empty text if there is no advice. `siblings`: the table that contains the key.
[[nodiscard]] std::string advice_for_key(const TableSpec& spec, const Node& entry, const Table& siblings);

// Returns the line to write if the value of `entry` has a wrong type, such as: key = ["ip"]. Returns an empty
// text if that line is not known. `siblings`: the table that contains the key.
[[nodiscard]] std::string line_for_value(const KeySpec& spec, const Node& entry, const Table& siblings);

// Returns advice for a table header in the plural, such as: write [[rule]] in place of [rules]. Returns an
// empty text if there is no advice.
[[nodiscard]] std::string header_for(std::string_view name, const Node& entry);

// Returns weir's word for the value that the setting `key` has in another proxy: "memory" for `store` with
// the word "local". Returns an empty text if there is none.
[[nodiscard]] std::string_view word_for(std::string_view key, std::string_view word);

}  // namespace weir::config
