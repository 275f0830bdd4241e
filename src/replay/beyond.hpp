// What rules ask of a request that a log does not tell.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <string>

namespace weir::replay {

// "the header X-Tenant", "the body"; empty where the log tells all that is asked. Of query parameters those
// that hold credentials are hidden in the log.
[[nodiscard]] std::string beyond_log(const policy::Match& match, const policy::ClientSettings& client);
[[nodiscard]] std::string beyond_log(const policy::Rule& rule, const policy::ClientSettings& client);

}  // namespace weir::replay
