// Digests as people and logs see them.
#pragma once

#include "weir/base/siphash.hpp"

#include <string>

namespace weir::base {

// 32 lower-case digits, the high half first.
[[nodiscard]] std::string in_hex(const Digest128& digest);

}  // namespace weir::base
