#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::observe {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Bytes that stand for themselves inside a JSON string.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> plain{};
  for (unsigned byte = 0x20; byte < 0x7f; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = plain_bytes();

void append_escape(std::string& out, char32_t code) {  // REQUIRES code ≤ 0xFFFF
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

struct Decoded {
  char32_t code = kReplacement;
  std::size_t length = 1;
};

// The multi-byte sequence at the start of `text` (Unicode 15, table 3-7: the second byte's range depends on
// the first). Anything else is one byte and kReplacement.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return {};
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return {};
  char32_t code = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {code, length};
}

bool steers(char32_t code) {
  return code < 0xa0 || code == 0x2028 || code == 0x2029;
}

// Appends what stands at the start of `text`, which is not a plain byte. Returns how many bytes that was.
std::size_t append_special(std::string& out, std::string_view text) {
  if (static_cast<unsigned char>(text.front()) < 0x80) {
    append_ascii(out, text.front());
    return 1;
  }
  const auto [code, length] = decode(text);
  if (code == kReplacement || steers(code))
    append_escape(out, code);
  else
    out.append(text.substr(0, length));
  return length;
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
