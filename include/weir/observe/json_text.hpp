// Makes text from clients safe for one line of JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::observe {

// Longer texts are cut at this length and end in "…".
inline constexpr std::size_t kMaxJsonText = 4096;  // in bytes

// The longest escape of one octet ("\\u001f").
inline constexpr std::size_t kMostOfAnOctet = 6;  // in bytes

// Returns true if `text` is short and needs no escapes, as almost every text.
[[nodiscard]] bool is_plain_json_text(std::string_view text) noexcept;

// Appends `text` as a JSON string with its quotes (RFC 8259 §7). Also escapes what JSON permits: DEL and the
// C1 controls, which steer terminals, and U+2028 and U+2029, which some readers treat as line ends. A byte
// that is no valid UTF-8 becomes U+FFFD.
void append_json_text(std::string& out, std::string_view text);

}  // namespace weir::observe
