// Functions that fit texts into the columns of a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

// Returns the text with exactly this width. Pads a short text with blanks at its end. Shortens a long text,
// and marks this with a ~.
[[nodiscard]] std::string in_columns(std::string text, std::size_t width);
// Returns the text with at least this width. Pads a short text with blanks at its beginning.
[[nodiscard]] std::string to_the_right(const std::string& text, std::size_t width);

// Returns a number with at most four digits: "12", "12.3k", "1.20M".
[[nodiscard]] std::string short_number(double value);

// A part of a line. If a line is too wide, the parts with the highest rank are omitted first. Parts with rank
// 0 are never omitted.
struct Part {
  std::string text;
  unsigned rank = 0;
};
// Returns the line with as many parts as fit into `width`, in their order. The result is wider than `width`
// only if the parts with rank 0 are wider.
[[nodiscard]] std::string fitting(std::vector<Part> parts, std::size_t width);

}  // namespace weir::cli
