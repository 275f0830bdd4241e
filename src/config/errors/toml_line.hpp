// Splits a line that the TOML parser has rejected into its parts, as far as weir can recognise them.
#pragma once

#include "config/schema/schema.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

inline constexpr std::string_view kBlanks = " \t\r";

[[nodiscard]] std::string_view without_blanks(std::string_view text);
// Returns line `number`, counted from 1.
[[nodiscard]] std::string_view nth_line(std::string_view text, std::size_t number);
// Returns the byte offset of the character in column `column`, counted from 1.
[[nodiscard]] std::size_t offset_of(std::string_view line, std::size_t column);

// The parts of a line of TOML.
struct Scan {
  std::size_t end = 0;                    // offset at which a comment begins, or the length of the line
  std::optional<std::size_t> open_quote;  // offset of a quotation mark that is not closed on the line
  std::size_t equals = std::string_view::npos;
};
[[nodiscard]] Scan scan(std::string_view line);

// Returns a message about a character that most editors do not show. TOML permits no control character except
// a tab, and other invisible characters only in quotes. Returns an empty text if the line has none.
[[nodiscard]] std::string describe_invisible(std::string_view line);
// Returns true if the line has more opening than closing braces outside quotes.
[[nodiscard]] bool leaves_a_brace_open(std::string_view line);

// Returns the text as a TOML string, with quotation marks around it.
[[nodiscard]] std::string quoted(std::string_view text);

[[nodiscard]] bool is_list_of_tables(std::string_view name);
// Returns the header that a table of this name needs: "[[rule]]" for a list of tables, "[server]" for a
// single table.
[[nodiscard]] std::string header_of(std::string_view name);
// Returns the table name between the brackets of a header.
[[nodiscard]] std::string_view name_in_header(std::string_view line);

using Names = std::vector<std::string>;
// Returns the parts of the name in the nearest table header above line `number`. Returns an empty list if
// there is no such header.
[[nodiscard]] Names table_of(std::string_view text, std::size_t number);
// Returns the key to which the value at offset `at` belongs; null if weir does not have the key.
[[nodiscard]] const KeySpec* key_at(const Names& table, std::string_view line, std::size_t at);

}  // namespace weir::config
