// Compares names in bodies as servers do that ignore case.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::policy {

// Replaces the capitals of ASCII by small letters. Also replaces the long s (U+017F) by 's', and the Kelvin
// sign (U+212A) by 'k', because Go's encoding/json does so. Leaves all other octets as they are.
inline void fold_case(std::string& text) {
  static constexpr std::string_view kLongS = "\xc5\xbf";
  static constexpr std::string_view kKelvin = "\xe2\x84\xaa";
  const auto may_change = [](char c) { return (c >= 'A' && c <= 'Z') || c == kLongS[0] || c == kKelvin[0]; };
  auto end = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), may_change) - text.begin());
  for (auto i = end; i < text.size(); ++i) {
    const auto rest = std::string_view(text).substr(i);
    char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    } else if (rest.starts_with(kLongS)) {
      c = 's';
      i += kLongS.size() - 1;
    } else if (rest.starts_with(kKelvin)) {
      c = 'k';
      i += kKelvin.size() - 1;
    }
    text[end++] = c;
  }
  text.resize(end);
}

}  // namespace weir::policy
