// Facts of a request that rules need and that a log lacks.
#pragma once

#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <string>
#include <vector>

namespace weir::replay {

// Returns "the header X-Tenant", "the body"; empty if the log has all that is needed.
[[nodiscard]] std::string beyond_log(const policy::Match& match);
[[nodiscard]] std::string beyond_log(const policy::Rule& rule);

// Returns the names of the query parameters that are needed. A log has them, unless the weir that wrote it
// hid them as secrets. Its lines show which are hidden (policy::hides_value).
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Match& match);
[[nodiscard]] std::vector<std::string> asked_parameters(const policy::Rule& rule);

}  // namespace weir::replay
