// Identifies an override in names of keys and in snapshots by what it matches, not by its position. So the
// other overrides keep their counts if a reload adds or removes one.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstdint>
#include <vector>

namespace weir::policy {

// Returns the identity of each override, in order; equal in every weir. Overrides with the same conditions
// get different identities, by their order.
[[nodiscard]] std::vector<std::uint64_t> override_identities(const Rule& rule);

}  // namespace weir::policy
