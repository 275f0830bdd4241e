#include "cli/top/columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace weir::cli {

std::string in_columns(std::string text, std::size_t width) {
  if (text.size() > width) text = width > 1 ? text.substr(0, width - 1) + "~" : text.substr(0, width);
  return text + std::string(width - text.size(), ' ');
}

std::string short_number(double value) {
  constexpr std::array<char, 4> kUnits{' ', 'k', 'M', 'G'};
  std::size_t unit = 0;
  while (value >= 10'000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text;
  const char* format = unit == 0 && (value >= 100 || value == std::floor(value)) ? "%.0f"
                       : value >= 100                                            ? "%.0f"
                                                                                 : "%.1f";
  const auto size = std::snprintf(text.data(), text.size(), format, value);
  std::string out(text.data(), static_cast<std::size_t>(std::max(size, 0)));
  if (unit != 0) out += kUnits[unit];
  return out;
}

std::string to_the_right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string fitting(std::vector<Part> parts, std::size_t width) {
  for (;;) {
    std::string text;
    for (const std::size_t blanks : {3, 2}) {
      text.clear();
      for (const auto& part : parts) text += (text.empty() ? "" : std::string(blanks, ' ')) + part.text;
      if (text.size() <= width) return text;
    }
    const auto first = std::max_element(parts.begin(), parts.end(),
                                        [](const Part& a, const Part& b) { return a.rank < b.rank; });
    if (first == parts.end() || first->rank == 0) return text;
    parts.erase(first);
  }
}

}  // namespace weir::cli
