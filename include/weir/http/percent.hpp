// Percent-decoding (RFC 3986 §2.1). A '%' without two hexadecimal digits after it stays as it is.
//
// Pure. Allocates nothing if nothing is encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// Returns the octet of the "%XX" at the start of `text`, or nullopt if there is none.
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

// The meaning of '+': itself in URIs, a blank in forms.
enum class Plus : std::uint8_t { Itself, Blank };

// Returns `raw` if nothing in it is encoded. Otherwise returns the decoded text, which is stored in
// `scratch`. The result is valid as long as `raw` and `scratch` stay unchanged.
[[nodiscard]] std::string_view percent_decoded(std::string_view raw, std::string& scratch,
                                               Plus plus = Plus::Itself);

// Appends the decoded `raw` to `out`.
void append_decoded(std::string& out, std::string_view raw, Plus plus = Plus::Itself);

// Returns true if the decoded `raw` equals `text`.
[[nodiscard]] bool decodes_to(std::string_view raw, std::string_view text, Plus plus = Plus::Itself) noexcept;

}  // namespace weir::http
