// Identifies an override by its conditions instead of its position, for names of keys and for snapshots. So
// if a reload adds or removes an override, the counters of all other overrides remain valid.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstdint>
#include <vector>

namespace weir::policy {

// Returns the identity of each override, in order. The identities are equal in every weir process. If several
// overrides have the same conditions, their order makes their identities different.
[[nodiscard]] std::vector<std::uint64_t> override_identities(const Rule& rule);

}  // namespace weir::policy
