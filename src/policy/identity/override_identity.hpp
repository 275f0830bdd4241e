// What an override is known by to names of keys and to snapshots: what it matches, not where it stands. So
// one that a reload puts in front of others, or takes away, leaves them their counts.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstdint>
#include <vector>

namespace weir::policy {

// Of each of the rule's overrides, in their order; the same in every weir. Of several that match alike, which
// only the first does, each has its own, in their order.
[[nodiscard]] std::vector<std::uint64_t> override_identities(const Rule& rule);

}  // namespace weir::policy
