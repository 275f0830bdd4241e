// Converts rules to the form in which snapshots save them (limit/saved.hpp), and lists the limiters of a
// rule.
#pragma once

#include "weir/limit/saved.hpp"
#include "weir/policy/rule.hpp"

#include <span>
#include <vector>

namespace weir::policy {

// Converts the rules, in order. The result points to the limiters of `rules`, which must outlive the result.
[[nodiscard]] std::vector<limit::SavedRule> saved_rules(std::span<const Rule> rules);

// Returns all limiters of a rule: its own, and those of its tiers, overrides, messages and reduced factors.
// Equal limiters may occur more than once. The result points into the rule.
[[nodiscard]] std::vector<limit::SharedLimiter*> all_limiters(Rule& rule);

}  // namespace weir::policy
