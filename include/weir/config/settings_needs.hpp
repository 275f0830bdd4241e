// Questions about the settings as a whole, such as whether any rule needs Redis.
#pragma once

#include "weir/config/settings.hpp"

#include <algorithm>

namespace weir::config {

// Returns true if a rule keeps its state in Redis.
[[nodiscard]] inline bool needs_redis(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.store == policy::Store::Redis; });
}

// Returns true if a rule takes units of keys from Redis in advance.
[[nodiscard]] inline bool takes_leases(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.lease.has_value(); });
}

// Returns how long an upgrade may take at most: the time for the new process to become ready, and two pauses
// of requests. One pause waits for the state, the other for the signal to continue.
[[nodiscard]] inline base::Duration longest_upgrade(const Settings& settings) noexcept {
  return settings.server.upgrade_timeout + 2 * settings.server.upgrade_pause;
}

// Returns true if a rule's key or an upstream's balance uses the attribute.
[[nodiscard]] bool keyed_by(const Settings& settings, policy::Attribute kind);
// Returns true if a rule reads bodies.
[[nodiscard]] bool asks_for_bodies(const Settings& settings);
// Return true if a rule, a route or an identity needs the claims of tokens, or the countries of addresses.
[[nodiscard]] bool asks_for_claims(const Settings& settings);
[[nodiscard]] bool asks_for_countries(const Settings& settings);
// Return true if the rule has an elastic limit (itself, a tier or an override), or if any rule has one. Then
// weir must measure its load.
[[nodiscard]] bool is_elastic(const policy::Rule& rule);
[[nodiscard]] bool asks_for_load(const Settings& settings);
// Returns true if a rule's charge depends on the response.
[[nodiscard]] bool asks_for_answers(const Settings& settings);

}  // namespace weir::config
