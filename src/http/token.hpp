// The octets of a token (RFC 9110 §5.6.2).
#pragma once

#include <string_view>

namespace weir::http {

constexpr bool is_tchar(char c) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const char l = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'z') || kMarks.find(c) != std::string_view::npos;
}

}  // namespace weir::http
