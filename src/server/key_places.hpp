// Where a key of a rule has its state: one place for each of the rule's limiters, for whichever of them a
// request meets. Pure.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>
#include <vector>

namespace weir::app {

struct KeyPlace {
  policy::AppliedLimiter applied;
  limit::Charge charge;  // of one unit
  bool messages = false;
};

struct KeyPlaces {
  std::vector<KeyPlace> there;  // in Redis
  std::vector<KeyPlace> here;   // in the table
  // What a reset empties beside: under which names the shares stand that are enforced here while Redis is
  // away, with those of `here`; and those of `there`, once it is to be done.
  std::vector<limit::Key> forgotten_here;
  std::vector<limit::Charge> forgotten_there{};
};

// Returns true if some limiter of the rule counts what is under way.
[[nodiscard]] bool holds(const policy::Rule& rule);

// REQUIRES a value for each part of the rule's key.
[[nodiscard]] KeyPlaces find_places(const policy::Rule& rule, std::span<const policy::KeyValue> values,
                                    const policy::NamingKeys& names);

// The same of a name that people are shown (policy::name_in_redis). `ledger` says which limiter counts it. If
// it is absent and the rule has several limiters, each of them is a place of the one name. Of a rule in Redis
// the name under which the table counts it while Redis is away is not known, and no reset empties that.
[[nodiscard]] KeyPlaces find_places(const policy::Rule& rule, const limit::Key& name,
                                    std::optional<limit::Ledger> ledger, const policy::NamingKeys& names);

}  // namespace weir::app
