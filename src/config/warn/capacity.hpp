// How much one request may cost: a rule whose cost is above its capacity refuses every request.
#pragma once

#include "config/read/limiter_reader.hpp"

#include "weir/policy/rule.hpp"

#include <cstdint>

namespace weir::app {

// Returns the costliest request that the limiter admits while it is idle.
[[nodiscard]] std::uint64_t most_at_once(const limit::Limiter& limiter);
// The same of a rule's own numbers, with its soft or elastic limit.
[[nodiscard]] std::uint64_t most_at_once(const policy::Rule& rule);
// Returns true if the limiter admits a request of this cost while it is idle.
[[nodiscard]] bool admits_idle(const limit::Limiter& limiter, limit::Cost cost);

// Notes a mistake where the rule, or one of its tiers and overrides, can never admit a request. Must be
// called after everything else of the rule has been read without a mistake.
void check_capacity(const TableReader& table, const Method& method, const policy::Rule& rule);

}  // namespace weir::app
