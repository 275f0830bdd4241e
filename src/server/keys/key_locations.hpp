// The locations where the state of a rule's key may be stored. A key has one location for each limiter of its
// rule (own limit, tiers, overrides, elastic limits), because each limiter keeps its own state of the key. If
// the rule also limits messages, each limiter that is not elastic has a second location, for messages. Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <optional>
#include <span>
#include <vector>

namespace weir::server {

struct KeyLocation {
  policy::AppliedLimiter applied;
  limit::Charge charge;   // a charge of one unit
  bool messages = false;  // true: the state counts messages; false: it counts requests
};

struct KeyLocations {
  std::vector<KeyLocation> there;  // locations in Redis
  std::vector<KeyLocation> here;   // locations in the key table
  // Keys in the key table that a reset must also empty: the keys of `here`, and the keys of the local shares
  // that weir enforces while Redis is unavailable.
  std::vector<limit::Key> forgotten_here;
  // Charges whose keys Inspector::peek() resets in Redis before it reads them. Empty unless a reset is
  // wanted; then the same charges as in `there`.
  std::vector<limit::Charge> forgotten_there{};
};

// Returns true if a limiter of the rule counts concurrent requests.
[[nodiscard]] bool holds(const policy::Rule& rule);

// Returns all locations of the key that has these values. REQUIRES one value for each part of the rule's key.
[[nodiscard]] KeyLocations find_locations(const policy::Rule& rule, std::span<const policy::KeyValue> values,
                                          const policy::NamingKeys& names);

// Returns the locations of a key by its name. `name`: the name that people see (policy::name_in_redis).
// `limiter_id`: the limiter that counts the key. If `limiter_id` is nullopt and the rule has several
// limiters, returns a location with this name for each limiter.
//
// For a rule in Redis, the result lacks the key's name in the key table, because this name can be computed
// only from the key's values. So a reset does not empty the local share that weir enforces while Redis is
// unavailable.
[[nodiscard]] KeyLocations find_locations(const policy::Rule& rule, const limit::Key& name,
                                          std::optional<limit::LimiterId> limiter_id,
                                          const policy::NamingKeys& names);

}  // namespace weir::server
