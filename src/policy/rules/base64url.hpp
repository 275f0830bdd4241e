// Text in base64url without padding (RFC 4648 §5, RFC 7515 §2), read strictly. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// Returns the octets; nullopt if the text has another character, padding, a length that no octets have, or
// bits behind the last octet: so no two texts stand for the same octets.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace weir::policy
