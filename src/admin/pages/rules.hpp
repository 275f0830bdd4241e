// Formats a rule with its counters as JSON.
#pragma once

#include "weir/admin/sources.hpp"

#include <boost/json/object.hpp>

namespace weir::admin {

// Returns the rule with this number. REQUIRES at < sources.rules.size().
[[nodiscard]] boost::json::object rule_json(const Sources& sources, std::size_t at);

}  // namespace weir::admin
