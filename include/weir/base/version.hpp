// The version, the commit and the date that this binary was built from.
#pragma once

#include <string_view>

namespace weir::base {

// Returns "weir 0.1.0 (commit 0123456789ab, 2026-11-26)". Without "(commit …)" if the source was no git work
// tree and -DWEIR_COMMIT named none.
[[nodiscard]] std::string_view version_text() noexcept;

}  // namespace weir::base
