// Converts rules for snapshots (limit/saved.hpp).
#pragma once

#include "weir/limit/saved.hpp"
#include "weir/policy/rule.hpp"

#include <span>
#include <vector>

namespace weir::policy {

// Converts the rules, in order. The result points to the limiters of `rules`, which must outlive the result.
[[nodiscard]] std::vector<limit::SavedRule> saved_rules(std::span<const Rule> rules);

}  // namespace weir::policy
