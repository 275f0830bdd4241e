// Texts of so many columns, as a screen has. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::app {

// Exactly so wide: with blanks behind it, or cut and marked with a ~.
[[nodiscard]] std::string in_columns(std::string text, std::size_t width);
// At least so wide, with blanks before it.
[[nodiscard]] std::string to_the_right(const std::string& text, std::size_t width);

// Four figures are enough for a glance: "12", "12.3k", "1.20M".
[[nodiscard]] std::string short_number(double value);

// Of a line. The higher its rank, the sooner it is left out; 0: never.
struct Part {
  std::string text;
  unsigned rank = 0;
};
// The parts that there is room for, rather than all of them and the last one cut: wider than that only where
// none may go.
[[nodiscard]] std::string fitting(std::vector<Part> parts, std::size_t width);

}  // namespace weir::app
