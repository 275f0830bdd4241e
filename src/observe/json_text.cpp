#include "weir/observe/json_text.hpp"

#include "weir/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::observe {

namespace {

// Marks the bytes that need no escape inside a JSON string.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> plain{};
  for (unsigned byte = 0x20; byte < 0x7f; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = plain_bytes();

void append_escape(std::string& out, char32_t code) {  // REQUIRES: code ≤ 0xFFFF
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::array<char, 6> text{'\\',
                                 'u',
                                 kDigits[code >> 12 & 15],
                                 kDigits[code >> 8 & 15],
                                 kDigits[code >> 4 & 15],
                                 kDigits[code & 15]};
  out.append(text.data(), text.size());
}

void append_ascii(std::string& out, char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      append_escape(out, static_cast<unsigned char>(byte));
  }
}

bool steers(char32_t code) {
  return code < 0xa0 || code == 0x2028 || code == 0x2029;
}

// Appends the first character of `text`, escaped if necessary. Returns the number of bytes of the character
// in `text`. REQUIRES: the first byte is not plain.
std::size_t append_special(std::string& out, std::string_view text) {
  if (static_cast<unsigned char>(text.front()) < 0x80) {
    append_ascii(out, text.front());
    return 1;
  }
  const auto [code, length] = base::first_utf8(text);
  if (length == 0 || steers(code))
    append_escape(out, code);
  else
    out.append(text.substr(0, length));
  return std::max<std::size_t>(length, 1);
}

}  // namespace

bool is_plain_json_text(std::string_view text) noexcept {
  return text.size() <= kMaxJsonText &&
         std::all_of(text.begin(), text.end(), [](char c) { return kPlain[static_cast<unsigned char>(c)]; });
}

void append_json_text(std::string& out, std::string_view text) {
  const bool cut = text.size() > kMaxJsonText;
  if (cut) text = text.substr(0, kMaxJsonText);
  out += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (!text.empty()) text.remove_prefix(append_special(out, text));
  }
  out += cut ? "\\u2026\"" : "\"";
}

}  // namespace weir::observe
