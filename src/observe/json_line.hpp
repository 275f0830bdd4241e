// Writes members of a JSON object that is one line of a log. `name` must be a literal such as `,"status":`,
// with comma, quotes and colon.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/text_writer.hpp"
#include "weir/observe/json_text.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::observe {

// Writes a member with a text, or nothing if the text is empty.
inline void write_text(base::TextWriter& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out << name;
  if (is_plain_json_text(value)) {
    out << '"' << value << '"';
    return;
  }
  std::string escaped;
  append_json_text(escaped, value);
  out << std::string_view(escaped);
}

inline void write_count(base::TextWriter& out, std::string_view name, std::uint64_t value) {
  out << name << value;
}

// Writes a member with a digest: 32 hexadecimal digits, the high word first.
inline void write_digest(base::TextWriter& out, std::string_view name, const base::Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 32> text;
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[digest.hi >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[digest.lo >> (60 - 4 * i) & 15];
  }
  out << name << '"' << std::string_view(text.data(), text.size()) << '"';
}

}  // namespace weir::observe
