// GET /api/rules: each rule with its counters.
#include "admin/pages.hpp"

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

json::object counters_of(const Sources& sources, std::size_t rule) {
  json::object out;
  for (std::size_t i = 0; i < observe::kRuleOutcomes; ++i) {
    std::uint64_t sum = 0;
    for (const auto* counters : sources.counters)
      sum += counters->decisions(static_cast<limit::RuleIndex>(rule), static_cast<observe::RuleOutcome>(i))
                 .value();
    out[observe::kRuleOutcomeNames[i]] = sum;
  }
  return out;
}

}  // namespace

std::string rules_json(const Sources& sources) {
  json::array rules;
  for (const RuleText& rule : sources.rules) {
    rules.push_back({{"name", rule.name},
                     {"algorithm", rule.algorithm},
                     {"limit", rule.limit},
                     {"match", rule.match},
                     {"key", rule.key},
                     {"store", rule.store},
                     {"mode", rule.mode},
                     {"counters", counters_of(sources, rule.label)}});
  }
  return json::serialize(json::object{{"rules", std::move(rules)}});
}

}  // namespace weir::admin
