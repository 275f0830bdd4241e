// What `weir top` shows, as text: from what the admin listener said now and a moment ago.
#pragma once

#include "cli/top/top_sample.hpp"

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace weir::app {

struct Screen {
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
  std::size_t width = 80;   // columns; kUnbounded: as wide as the longest line, and nothing is cut
  std::size_t height = 24;  // lines; 0: as many as there are
  bool ansi = false;        // may be coloured
};

// `address`: whom it is of. Each line ends in a newline and has at most `width` columns. Who refuses most
// stands first, shadow rules behind the others, and last those that nobody met in between, each group in the
// file's order. Where that is higher than the screen, each rule keeps its first line as long as there is
// room, those in front their clients too, and the last line says how many rules are left out.
[[nodiscard]] std::string draw(const Sample& before, const Sample& now, std::string_view address,
                               const Screen& screen);
// The same while nobody answers, and why.
[[nodiscard]] std::string draw_absence(std::chrono::seconds absent, std::string_view why,
                                       std::string_view address, const Screen& screen);

}  // namespace weir::app
