// Draws the frame of `weir top` as text, from two samples of the admin listener's data.
#pragma once

#include "cli/top/top_sample.hpp"

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace weir::cli {

struct Screen {
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
  std::size_t width = 80;   // number of columns; kUnbounded: lines are never shortened
  std::size_t height = 24;  // number of lines; 0: no bound
  bool ansi = false;        // true: the frame has colours
};

// Returns the frame of the weir at `address`. Each line ends with a newline and has at most `screen.width`
// columns.
//
// Enforced rules come first, then shadow rules, then rules that no request matched. Within each group, rules
// with the most refusals come first. If the screen has too few lines, only the first rules are shown with
// their clients. The rules after them have one line each. The last line says how many rules are not shown.
[[nodiscard]] std::string draw(const Sample& before, const Sample& now, std::string_view address,
                               const Screen& screen);
// Returns the frame for the time in which weir does not answer. The frame says how long weir has not
// answered, and why.
[[nodiscard]] std::string draw_absence(std::chrono::seconds absent, std::string_view why,
                                       std::string_view address, const Screen& screen);

}  // namespace weir::cli
