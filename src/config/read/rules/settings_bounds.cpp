// Bounds on all rules of a configuration together.
#include "config/read/settings_sections.hpp"

#include "weir/limit/shared_limiter.hpp"
#include "weir/policy/rule_finder.hpp"
#include "weir/policy/saved_rule.hpp"

namespace weir::config {

namespace {

// Reports a mistake if all requests that a rule matches get more than kMaxCharges charges.
void report_too_many_at_once(const std::vector<TableReader>& tables, std::span<const policy::Rule> rules) {
  const auto* rule = policy::first_beyond(rules, limit::kMaxCharges);
  if (rule == nullptr) return;
  tables[static_cast<std::size_t>(rule - rules.data())].mistake(
      "", "found more than " + std::to_string(limit::kMaxCharges) + " limits for every request that rule " +
              in_quotes(rule->name) + " matches; expected at most " + std::to_string(limit::kMaxCharges) +
              ". A rule with an elastic limit counts twice. Give rules a narrower `match`");
}

// Reports a mistake if the rules have more different limits than one process can hold.
void report_too_many_limits(const std::vector<TableReader>& tables, std::span<policy::Rule> rules) {
  limit::Limiters limiters;
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (auto* limiter : policy::all_limiters(rules[i])) {
      if (limiters.settle(*limiter)) continue;
      const auto most = std::to_string(limit::Limiters::kMost);
      return tables[i].mistake(
          "",
          "found more than " + most +
              " different limits in this rule and those before it; expected at most " + most +
              ". With adapt each limit counts as 20, and in Redis with on_store_failure = \"local\" as 40. "
              "Write fewer tiers, overrides or rules with adapt");
    }
}

}  // namespace

void check_bounds(const std::vector<TableReader>& tables, std::span<policy::Rule> rules) {
  report_too_many_at_once(tables, rules);
  report_too_many_limits(tables, rules);
}

}  // namespace weir::config
