// What a snapshot has to know of a rule (limit/saved.hpp).
#pragma once

#include "weir/limit/saved.hpp"
#include "weir/policy/rule.hpp"

#include <span>
#include <vector>

namespace weir::policy {

// In their order. Refers to the limiters of `rules`, which outlive it.
[[nodiscard]] std::vector<limit::SavedRule> saved_rules(std::span<const Rule> rules);

}  // namespace weir::policy
