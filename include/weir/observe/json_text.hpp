// Writes text from clients so that it is safe in one line of JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::observe {

// The maximum length of a text. Longer texts are cut and end with "…".
inline constexpr std::size_t kMaxJsonText = 4096;  // in bytes

// The length of the longest escape for one octet ("\\u001f").
inline constexpr std::size_t kMostOfAnOctet = 6;  // in bytes

// Returns true if `text` is short and needs no escapes, as is the case for almost every text.
[[nodiscard]] bool is_plain_json_text(std::string_view text) noexcept;

// Appends `text` as a JSON string with its quotes (RFC 8259 §7). Also escapes some characters that JSON
// permits. DEL and C1 controls can control terminals, and some programs read U+2028 and U+2029 as line ends.
// Writes U+FFFD for each byte that is not valid UTF-8.
void append_json_text(std::string& out, std::string_view text);

}  // namespace weir::observe
