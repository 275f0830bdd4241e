// Reads TOML into plain values with line numbers. No other file of the project uses the TOML parser's types.
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
  std::vector<Node> entries;  // the entries of a table, each with its key, in the order of the file
};
using Array = std::vector<Node>;

struct Fraction {  // a number with a decimal point
  double value = 0;
};
struct Moment {};      // a date or time; no key accepts one
struct Unreadable {};  // a string with an unset environment variable, which was reported as a mistake

struct Node {
  std::string key;  // empty for an element of an array
  int line = 1;
  std::variant<Table, Array, std::string, std::int64_t, bool, Fraction, Moment, Unreadable> value;

  [[nodiscard]] const Table* table() const noexcept { return std::get_if<Table>(&value); }
  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value); }
  [[nodiscard]] const std::string* text() const noexcept { return std::get_if<std::string>(&value); }
};

// Returns a name for the type of the node: "a string", "a whole number", "a table", …
[[nodiscard]] std::string_view type_name(const Node& node) noexcept;

// Returns a label for an element of a list in messages: "[per-key]" if the element has a name, otherwise its
// position, counted from 1, such as "[#2]".
[[nodiscard]] std::string element_label(std::string_view name, std::size_t position);

// Says whether messages may quote lines of the file. Messages must not quote lines of a keys file, which
// contain API keys.
enum class Quoting : std::uint8_t { Lines, Nothing };

// Parses `text` and replaces `${NAME}` in its strings. Adds mistakes in the text to `mistakes`. After a
// syntax error, returns an empty table.
[[nodiscard]] Node read_toml(std::string_view text, const std::string& file, ConfigErrors& mistakes,
                             Quoting quoting = Quoting::Lines);

}  // namespace weir::config
