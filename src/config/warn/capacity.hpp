// The most that one request may cost. A rule whose cost is above its capacity refuses every request.
#pragma once

#include "config/read/limiter_reader.hpp"

#include "weir/policy/rule.hpp"

#include <cstdint>

namespace weir::config {

// Returns the highest cost of a request that the idle limiter admits.
[[nodiscard]] std::uint64_t most_at_once(const limit::Limiter& limiter);
// Does the same for a rule's own numbers, including its soft or elastic limit.
[[nodiscard]] std::uint64_t most_at_once(const policy::Rule& rule);
// Returns true if the idle limiter admits a request of this cost.
[[nodiscard]] bool admits_idle(const limit::Limiter& limiter, limit::Cost cost);

// Reports a mistake if the rule, a tier or an override can never admit a request. Must be called after
// everything else of the rule was read without a mistake.
void check_capacity(const TableReader& table, const Method& method, const policy::Rule& rule);

}  // namespace weir::config
