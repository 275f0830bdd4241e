// TOML as plain values with line numbers: all that the rest of the house sees of the parser.
#pragma once

#include "weir/config/mistakes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::app {

struct Node;

struct Table {
  std::vector<Node> entries;  // each with its key, in the order of the file
};
using Array = std::vector<Node>;

struct Fraction {  // a number with a point
  double value = 0;
};
struct Moment {};      // a date or time: no key of ours takes one
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

// How messages call an element of a list: "[per-key]" by its name, or "[#2]" by its place, counted from 1.
[[nodiscard]] std::string element_label(std::string_view name, std::size_t position);

// Whether messages may quote lines of the file. They may not of one that holds API keys.
enum class Quoting : std::uint8_t { Lines, Nothing };

// The document, with `${NAME}` in strings replaced. What cannot be read is noted in `mistakes`; after an
// error of syntax the table is empty.
[[nodiscard]] Node read_toml(std::string_view text, const std::string& file, Mistakes& mistakes,
                             Quoting quoting = Quoting::Lines);

}  // namespace weir::app
