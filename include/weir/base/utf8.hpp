// Decodes UTF-8 from untrusted octets. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::base {

struct Utf8Character {
  char32_t code = 0xFFFD;  // the replacement character if the octets are invalid
  std::size_t length = 0;  // in octets; 0 if the octets are invalid
};

// Returns the first character of `text`, or {U+FFFD, 0} if `text` does not begin with valid UTF-8. Overlong
// forms, surrogates and code points above U+10FFFF are invalid (Unicode 15, table 3-7).
[[nodiscard]] Utf8Character first_utf8(std::string_view text) noexcept;

}  // namespace weir::base
