#include "weir/base/hex.hpp"

#include <string_view>

namespace weir::base {

std::string in_hex(const Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const auto word : {digest.hi, digest.lo})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

}  // namespace weir::base
