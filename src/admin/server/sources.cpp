#include "weir/admin/sources.hpp"

#include "weir/policy/rule.hpp"

namespace weir::admin {

RuleText describe(const policy::Rule& rule) {
  return {.name = rule.name,
          .algorithm = limit::algorithm_name(rule.limiter),
          .limit = limit::describe(rule.limiter),
          .match = rule.match.describe(),
          .key = policy::describe(rule.key),
          .store = rule.store == policy::Store::Redis ? "redis" : "memory",
          .mode = rule.mode == policy::Mode::Shadow ? "shadow" : "enforce",
          .settles = rule.settlement.has_value(),
          .messages = rule.messages.has_value(),
          .penalty = rule.penalty.has_value(),
          .adapts = rule.adapt.has_value(),
          .label = rule.index};
}

}  // namespace weir::admin
