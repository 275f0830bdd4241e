// Writes and reads digests in hexadecimal, the form in logs and on admin pages.
#pragma once

#include "weir/base/siphash.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::base {

// Returns the digest as 32 lower-case digits, the high half first.
[[nodiscard]] std::string in_hex(const Digest128& digest);
// Parses a digest of exactly 32 digits of either case. Returns nullopt for any other text.
[[nodiscard]] std::optional<Digest128> digest_of_hex(std::string_view text);

}  // namespace weir::base
