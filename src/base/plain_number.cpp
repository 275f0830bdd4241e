#include "weir/base/plain_number.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace weir::base {

std::string plain_number(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 352> text;  // the smallest positive number needs 326 characters, the largest 309
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed).ptr;
  return {text.data(), end};
}

}  // namespace weir::base
