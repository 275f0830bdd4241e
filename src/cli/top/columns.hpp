// Fits texts into the columns of a screen. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

// Returns the text in exactly this width: padded with blanks behind it, or cut and marked with a ~.
[[nodiscard]] std::string in_columns(std::string text, std::size_t width);
// Returns the text in at least this width, with blanks before it.
[[nodiscard]] std::string to_the_right(const std::string& text, std::size_t width);

// Returns a number with at most four digits: "12", "12.3k", "1.20M".
[[nodiscard]] std::string short_number(double value);

// A part of a line. Parts with a high rank are left out first; parts with rank 0 never.
struct Part {
  std::string text;
  unsigned rank = 0;
};
// Returns the parts for which there is room, instead of all parts and a cut end. The result is wider than
// `width` only if the parts of rank 0 are.
[[nodiscard]] std::string fitting(std::vector<Part> parts, std::size_t width);

}  // namespace weir::cli
