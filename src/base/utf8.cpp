#include "weir/base/utf8.hpp"

namespace weir::base {

// The valid range of the second octet depends on the first octet.
Utf8Character first_utf8(std::string_view text) noexcept {
  if (text.empty()) return {};
  const auto octet = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = octet(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return {};
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (octet(1) < low || octet(1) > high) return {};
  char32_t code = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((octet(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (octet(i) & 0x3f);
  }
  return {code, length};
}

}  // namespace weir::base
