#include "weir/base/hex.hpp"

#include <charconv>

namespace weir::base {

std::string in_hex(const Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const auto word : {digest.hi, digest.lo})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

std::optional<Digest128> digest_of_hex(std::string_view text) {
  constexpr std::size_t kWord = 16;  // the number of hexadecimal digits of a 64-bit word
  if (text.size() != 2 * kWord) return std::nullopt;
  Digest128 digest{};
  for (auto* word : {&digest.hi, &digest.lo}) {
    const auto* const end = text.data() + kWord;
    const auto parsed = std::from_chars(text.data(), end, *word, 16);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    text.remove_prefix(kWord);
  }
  return digest;
}

}  // namespace weir::base
