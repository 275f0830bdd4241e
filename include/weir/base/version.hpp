// The version, commit and date of the source of this binary.
#pragma once

#include <string_view>

namespace weir::base {

// Returns "weir 0.2.0 (commit 0123456789ab, 2026-11-26)". The part in parentheses is missing if the source
// was not a git work tree and -DWEIR_COMMIT was not set.
[[nodiscard]] std::string_view version_text() noexcept;

// Returns the commit alone, "0123456789ab", or "unknown".
[[nodiscard]] std::string_view commit() noexcept;

}  // namespace weir::base
