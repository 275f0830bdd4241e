// Digests as people and logs see them.
#pragma once

#include "weir/base/siphash.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::base {

// 32 lower-case digits, the high half first.
[[nodiscard]] std::string in_hex(const Digest128& digest);
// Returns the digest of 32 digits in either case; nullopt if the text is anything else.
[[nodiscard]] std::optional<Digest128> digest_of_hex(std::string_view text);

}  // namespace weir::base
