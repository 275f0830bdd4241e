// Percent-encoding (RFC 3986 §2.1): what a text of a query stands for. A '%' without two hexadecimal digits
// behind it stands for itself.
//
// Pure, and without an allocation where nothing is encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// The octet that "%XX" at the front of `text` stands for; nullopt when no such three characters stand there.
[[nodiscard]] inline std::optional<char> encoded_octet(std::string_view text) noexcept {
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  const int high = value(text[1]);
  const int low = value(text[2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

// What '+' stands for: itself in URIs, a blank by the custom of forms.
enum class Plus : std::uint8_t { Itself, Blank };

// A view of `raw` where nothing is encoded, else of `scratch`, whose capacity is used again; it lives as long
// as both stand still.
[[nodiscard]] std::string_view percent_decoded(std::string_view raw, std::string& scratch,
                                               Plus plus = Plus::Itself);

// Appends `raw`, decoded, to `out`.
void append_decoded(std::string& out, std::string_view raw, Plus plus = Plus::Itself);

// Whether `raw`, decoded, is `text`.
[[nodiscard]] bool decodes_to(std::string_view raw, std::string_view text, Plus plus = Plus::Itself) noexcept;

}  // namespace weir::http
