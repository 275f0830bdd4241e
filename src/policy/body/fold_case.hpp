// Compares names in bodies without regard to case, as some servers do.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace weir::policy {

// A letter outside ASCII that some servers treat as equal to an ASCII letter when they ignore case.
struct FoldedLetter {
  std::string_view utf8;
  char folded;
};
inline constexpr std::array<FoldedLetter, 4> kFoldedLetters{{
    {"\xc4\xb0", 'i'},      // I with a dot (U+0130): Java's equalsIgnoreCase
    {"\xc4\xb1", 'i'},      // i without a dot (U+0131): Java's equalsIgnoreCase
    {"\xc5\xbf", 's'},      // long s (U+017F): Java, and Go's encoding/json
    {"\xe2\x84\xaa", 'k'},  // Kelvin sign (U+212A): Java, and Go's encoding/json
}};

// Converts ASCII capitals to lower case, and replaces each letter of kFoldedLetters by its `folded` letter.
// Leaves all other octets unchanged.
inline void fold_case(std::string& text) {
  const auto may_change = [](char c) {
    return (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  };
  auto end = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), may_change) - text.begin());
  for (auto i = end; i < text.size(); ++i) {
    const auto rest = std::string_view(text).substr(i);
    char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    } else if (may_change(c)) {
      const auto* letter = std::find_if(kFoldedLetters.begin(), kFoldedLetters.end(),
                                        [&](const FoldedLetter& one) { return rest.starts_with(one.utf8); });
      if (letter != kFoldedLetters.end()) {
        c = letter->folded;
        i += letter->utf8.size() - 1;
      }
    }
    text[end++] = c;
  }
  text.resize(end);
}

}  // namespace weir::policy
