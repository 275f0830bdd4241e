// Questions about the settings as a whole, such as whether any rule needs Redis.
#pragma once

#include "weir/config/settings.hpp"

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

// Returns true if a rule's key or an upstream's balance looks at such an attribute.
[[nodiscard]] bool keyed_by(const Settings& settings, policy::Attribute kind);
// Whether any rule reads bodies.
[[nodiscard]] bool asks_for_bodies(const Settings& settings);
// Whether any rule, route or identity needs the claims of tokens, or the countries of addresses.
[[nodiscard]] bool asks_for_claims(const Settings& settings);
[[nodiscard]] bool asks_for_countries(const Settings& settings);
// Whether a rule has an elastic limit, for itself or for some; whether any has, so that load has to be known.
[[nodiscard]] bool is_elastic(const policy::Rule& rule);
[[nodiscard]] bool asks_for_load(const Settings& settings);
// Whether answers have a say in what some rule charges.
[[nodiscard]] bool asks_for_answers(const Settings& settings);

}  // namespace weir::app
