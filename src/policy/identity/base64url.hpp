// Decodes base64url without padding (RFC 4648 §5, RFC 7515 §2). Rejects every non-canonical encoding. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::policy {

// Returns the decoded octets. Returns nullopt for other characters, padding, an impossible length, or
// trailing bits that are not 0. So no two texts decode to the same octets.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace weir::policy
