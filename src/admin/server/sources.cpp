#include "weir/admin/sources.hpp"

#include "weir/policy/rule.hpp"

namespace weir::admin {

RuleText describe(const policy::Rule& rule) {
  const bool paces = !rule.bandwidth.empty();
  return {.name = rule.name,
          .algorithm = paces ? "bandwidth" : limit::algorithm_name(rule.limiter),
          .limit = paces ? "bandwidth " + rule.bandwidth : limit::describe(rule.limiter),
          .match = rule.match.describe(),
          .key = policy::describe(rule.key),
          .store = rule.store == policy::Store::Redis ? "redis" : "memory",
          .mode = rule.mode == policy::Mode::Shadow ? "shadow" : "enforce",
          .settles = rule.settlement.has_value() || rule.overdraft,
          .messages = rule.messages.has_value(),
          .penalty = rule.penalty.has_value(),
          .adapts = rule.adapt.has_value(),
          .paces = paces,
          .index = rule.index};
}

}  // namespace weir::admin
