// Functions that tell what the settings need, such as whether any rule needs Redis.
#pragma once

#include "weir/config/settings.hpp"

#include <algorithm>

namespace weir::config {

// Returns true if any rule keeps its state in Redis.
[[nodiscard]] inline bool needs_redis(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.store == policy::Store::Redis; });
}

// Returns true if any rule prefetches units from Redis (the setting `lease`).
[[nodiscard]] inline bool takes_leases(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.lease.has_value(); });
}

// Returns the longest time that an upgrade to a new process may take: the time until the new process is
// ready, and two pauses of requests. The first pause ends when the new process has taken over the state, the
// second when it listens.
[[nodiscard]] inline base::Duration longest_upgrade(const Settings& settings) noexcept {
  return settings.server.upgrade_timeout + 2 * settings.server.upgrade_pause;
}

// Returns true if the attribute is part of a rule's key, or of an upstream's hash_key.
[[nodiscard]] bool keyed_by(const Settings& settings, policy::Attribute kind);
// Returns true if any rule reads the bodies of requests.
[[nodiscard]] bool asks_for_bodies(const Settings& settings);
// Returns true if any rule, upstream or source of [client] uses claims of tokens.
[[nodiscard]] bool asks_for_claims(const Settings& settings);
// Returns true if any rule, upstream or route uses the country, city, region or network of addresses.
[[nodiscard]] bool asks_for_places(const Settings& settings);
// Returns true if the rule or one of its overrides has a condition on a claim.
[[nodiscard]] bool names_claims(const policy::Rule& rule);
// Returns true if the rule, one of its tiers or one of its overrides has an elastic limit.
[[nodiscard]] bool is_elastic(const policy::Rule& rule);
// Returns true if any rule has an elastic limit, so that weir must measure its load.
[[nodiscard]] bool asks_for_load(const Settings& settings);
// Returns true if any route writes the client's certificate to a header field or a redirect.
[[nodiscard]] bool asks_for_certificates(const Settings& settings);
// Returns true if the cost of any rule depends on the response.
[[nodiscard]] bool asks_for_answers(const Settings& settings);

}  // namespace weir::config
