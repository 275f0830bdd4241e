// What rules ask for that a weir either has from its start on or has not.
#pragma once

#include "weir/app/settings.hpp"

#include <algorithm>

namespace weir::app {

// Some rule keeps its state in Redis.
[[nodiscard]] inline bool needs_redis(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.store == policy::Store::Redis; });
}

// Some rule takes units of keys in Redis in advance.
[[nodiscard]] inline bool takes_leases(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.lease.has_value(); });
}

}  // namespace weir::app
