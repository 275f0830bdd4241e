// Advises on settings in the spelling of other proxies, with the line to write instead.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <string>
#include <string_view>

namespace weir::config {

// Returns advice for a key that the table does not have, such as: write limit = "10/s"
// Empty if no advice is known. `siblings`: the table, with the key in it.
[[nodiscard]] std::string advice_for_key(const TableSpec& spec, const Node& entry, const Table& siblings);

// Returns the line to write for a value of a wrong type, such as: key = ["ip"]
// Empty if no line is known. `siblings`: the table, with the key in it.
[[nodiscard]] std::string line_for_value(const KeySpec& spec, const Node& entry, const Table& siblings);

// Returns advice for a header that names tables in the plural, such as: write [[rule]] in place of [rules]
// Empty if no advice is known.
[[nodiscard]] std::string header_for(std::string_view name, const Node& entry);

// Returns the choice of the key that another proxy calls `word`; empty if none is known.
[[nodiscard]] std::string_view word_for(std::string_view key, std::string_view word);

}  // namespace weir::config
