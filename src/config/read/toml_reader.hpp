// TOML as plain values with line numbers. No other file of the project uses the parser's types.
#pragma once

#include "weir/config/config_errors.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::config {

struct Node;

struct Table {
  std::vector<Node> entries;  // each with its key, in the order of the file
};
using Array = std::vector<Node>;

struct Fraction {  // a number with a point
  double value = 0;
};
struct Moment {};      // a date or time; no key takes one
struct Unreadable {};  // a string whose environment variable is missing; the mistake is noted already

struct Node {
  std::string key;  // empty for an element of an array
  int line = 1;
  std::variant<Table, Array, std::string, std::int64_t, bool, Fraction, Moment, Unreadable> value;

  [[nodiscard]] const Table* table() const noexcept { return std::get_if<Table>(&value); }
  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value); }
  [[nodiscard]] const std::string* text() const noexcept { return std::get_if<std::string>(&value); }
};

// "a string", "a whole number", "a table", …
[[nodiscard]] std::string_view type_name(const Node& node) noexcept;

// Returns the name of a list element in messages: "[per-key]", or its position from 1, such as "[#2]".
[[nodiscard]] std::string element_label(std::string_view name, std::size_t position);

// Says whether messages may quote lines of the file. They must not quote a file of API keys.
enum class Quoting : std::uint8_t { Lines, Nothing };

// Returns the document, with `${NAME}` in strings replaced. Adds what cannot be read to `mistakes`. After a
// syntax error the table is empty.
[[nodiscard]] Node read_toml(std::string_view text, const std::string& file, ConfigErrors& mistakes,
                             Quoting quoting = Quoting::Lines);

}  // namespace weir::config
