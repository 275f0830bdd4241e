// What rules ask of a request that a log does not tell.
#pragma once

#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <string>
#include <vector>

namespace weir::replay {

// "the header X-Tenant", "the body"; empty where the log tells all that is asked.
[[nodiscard]] std::string beyond_log(const policy::Match& match);
[[nodiscard]] std::string beyond_log(const policy::Rule& rule);

// The names of the query parameters that are asked for. A log tells them, but for those that the weir which
// wrote it took for secrets, and those its lines show (policy::hides_value).
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Match& match);
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Rule& rule);

}  // namespace weir::replay
