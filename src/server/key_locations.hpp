// The places where the state of a rule's key may be: one for each limiter of the rule. A request meets one of
// the limiters. Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>
#include <vector>

namespace weir::server {

struct KeyLocation {
  policy::AppliedLimiter applied;
  limit::Charge charge;  // of one unit
  bool messages = false;
};

struct KeyLocations {
  std::vector<KeyLocation> there;  // in Redis
  std::vector<KeyLocation> here;   // in the table
  // Keys that a reset also empties. forgotten_here has the keys of `here`. It also has the keys of the local
  // shares that weir enforces while Redis is away. forgotten_there has the keys of `there` once a reset
  // begins.
  std::vector<limit::Key> forgotten_here;
  std::vector<limit::Charge> forgotten_there{};
};

// Returns true if a limiter of the rule counts concurrent requests.
[[nodiscard]] bool holds(const policy::Rule& rule);

// Returns the places of a key. REQUIRES a value for each part of the rule's key.
[[nodiscard]] KeyLocations find_locations(const policy::Rule& rule, std::span<const policy::KeyValue> values,
                                          const policy::NamingKeys& names);

// Does the same for a name that people see (policy::name_in_redis). `limiter_id` says which limiter counts
// it. If `limiter_id` is absent and the rule has several limiters, each limiter is a place of that name. For
// a rule in Redis, the table's name for the time without Redis is unknown, so a reset does not empty it.
[[nodiscard]] KeyLocations find_locations(const policy::Rule& rule, const limit::Key& name,
                                          std::optional<limit::LimiterId> limiter_id,
                                          const policy::NamingKeys& names);

}  // namespace weir::server
