// The highest cost of a request that a limiter can ever admit. A rule whose requests cost more refuses every
// request.
#pragma once

#include "config/read/rules/limiter_reader.hpp"

#include "weir/policy/rule.hpp"

#include <cstdint>

namespace weir::config {

// Returns the highest cost of a request that the limiter admits when it is unused.
[[nodiscard]] std::uint64_t most_at_once(const limit::Limiter& limiter);
// Returns the highest cost of a request that the rule's own limits admit, including a soft or elastic limit.
[[nodiscard]] std::uint64_t most_at_once(const policy::Rule& rule);
// Returns true if the limiter admits a request of this cost when it is unused.
[[nodiscard]] bool admits_idle(const limit::Limiter& limiter, limit::Cost cost);

// Reports a mistake if the rule, a tier or an override can never admit a request. Must be called after all
// other settings of the rule were read without a mistake.
void check_capacity(const TableReader& table, const Method& method, const policy::Rule& rule);

}  // namespace weir::config
