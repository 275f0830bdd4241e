// Identifies an override by its conditions instead of its position, for names of keys and for snapshots. So
// if a reload adds or removes an override, the counters of the others remain valid.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstdint>
#include <vector>

namespace weir::policy {

// Returns the identity of each override, in order. The identities are equal in every weir process. Overrides
// with the same conditions get different identities, by their order.
[[nodiscard]] std::vector<std::uint64_t> override_identities(const Rule& rule);

}  // namespace weir::policy
