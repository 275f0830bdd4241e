// Characters of UTF-8, as octets that strangers chose may hold them. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::base {

struct Utf8Character {
  char32_t code = 0xFFFD;  // the replacement character, where octets are none
  std::size_t length = 0;  // of its octets; 0: they are no character
};

// The character at the start of `text`. Overlong forms, surrogates and what lies beyond U+10FFFF are none
// (Unicode 15, table 3-7).
[[nodiscard]] Utf8Character first_utf8(std::string_view text) noexcept;

}  // namespace weir::base
