// GET /api/rules: returns each rule with its counters.
#include "admin/pages/rules.hpp"

#include "admin/metrics/totals.hpp"
#include "admin/pages/answer.hpp"

#include "weir/observe/json_value.hpp"

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

json::object counters_of(const Sources& sources, std::size_t rule) {
  json::object out;
  for (std::size_t i = 0; i < observe::kRuleOutcomes; ++i)
    out[observe::kRuleOutcomeNames[i]] = total(sources, rule, static_cast<observe::RuleOutcome>(i));
  return out;
}

}  // namespace

json::object rule_json(const Sources& sources, std::size_t at) {
  const RuleText& rule = sources.rules[at];
  return {{"name", rule.name},   {"algorithm", rule.algorithm},
          {"limit", rule.limit}, {"match", rule.match},
          {"key", rule.key},     {"store", rule.store},
          {"mode", rule.mode},   {"counters", counters_of(sources, at)}};
}

std::string rules_json(const Sources& sources) {
  json::array rules;
  for (std::size_t i = 0; i < sources.rules.size(); ++i) rules.push_back(rule_json(sources, i));
  return observe::json_text(json::object{{"rules", std::move(rules)}});
}

}  // namespace weir::admin
