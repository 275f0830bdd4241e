// Text that strangers chose, made fit for one line of JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::observe {

// Longer texts are cut there, and end in "…".
inline constexpr std::size_t kMaxJsonText = 4096;  // bytes

// The most that an octet of a text comes to ("\\u001f").
inline constexpr std::size_t kMostOfAnOctet = 6;  // bytes

// Whether `text` is short and stands for itself between quotes, as nearly every text does.
[[nodiscard]] bool is_plain_json_text(std::string_view text) noexcept;

// Appends `text` as a JSON string with its quotes (RFC 8259 §7). Escaped beyond what JSON asks: DEL and the
// C1 controls, which steer terminals, and U+2028 and U+2029, which some readers take for the end of a line. A
// byte that is no part of valid UTF-8 becomes U+FFFD.
void append_json_text(std::string& out, std::string_view text);

}  // namespace weir::observe
