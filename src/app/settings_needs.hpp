// What the settings as a whole ask for.
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

// Returns how long an upgrade may take: the new process becomes ready, and requests wait twice, for the state
// and for the word to open.
[[nodiscard]] inline base::Duration longest_upgrade(const Settings& settings) noexcept {
  return settings.server.upgrade_timeout + 2 * settings.server.upgrade_pause;
}

}  // namespace weir::app
