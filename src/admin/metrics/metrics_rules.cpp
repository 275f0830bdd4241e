// Metrics of rules: decisions and settlements.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

namespace {

using observe::Counters;

// Writes the settlements (corrections of charges) of the rules that settle. Other rules would only show
// zeros.
void write_settlements(MetricsPage& page) {
  Family settled = page.counter("weir_settlements_total", "Charges settled after the response, by outcome.");
  for (std::size_t rule = 0; rule < page.sources().rules.size(); ++rule) {
    if (!page.sources().rules[rule].settles) continue;
    for (std::size_t i = 0; i < observe::kSettled; ++i) {
      const auto index = page.sources().rules[rule].index;
      const auto outcome = static_cast<observe::Settled>(i);
      settled.add({{"outcome", observe::kSettledNames[i]}, {"rule", page.sources().rules[rule].name}},
                  page.sum([&](const Counters& c) { return c.settlements(index, outcome).value(); }));
    }
  }
  page.put(settled);
}

void write_penalties(MetricsPage& page) {
  Family penalties = page.counter("weir_penalties_total", "Penalties that began, by rule.");
  for (const auto& rule : page.sources().rules)
    if (rule.penalty)
      penalties.add({{"rule", rule.name}},
                    page.sum([&](const Counters& c) { return c.penalties(rule.index).value(); }));
  page.put(penalties);
}

void write_factors(MetricsPage& page) {
  if (!page.sources().factor) return;
  Family factors =
      page.gauge("weir_rule_factor", "Share of its limit that a rule with adapt grants, 0 to 1.");
  for (const auto& rule : page.sources().rules)
    if (rule.adapts)
      factors.add({{"rule", rule.name}}, limit::percent_of(page.sources().factor(rule.index)) / 100.0);
  page.put(factors);
}

void write_bandwidth(MetricsPage& page) {
  constexpr double kMicrosInSecond = 1e6;
  Family waited = page.counter("weir_bandwidth_waited_seconds_total",
                               "Time for which bodies waited for the bandwidth of a rule.");
  for (const auto& rule : page.sources().rules)
    if (rule.paces)
      waited.add({{"rule", rule.name}}, page.sum([&](const Counters& c) {
        return static_cast<double>(c.bandwidth_waited(rule.index).value()) / kMicrosInSecond;
      }));
  page.put(waited);
}

void write_messages(MetricsPage& page) {
  Family messages = page.counter("weir_messages_total", "Decisions of each rule on messages, by outcome.");
  for (std::size_t rule = 0; rule < page.sources().rules.size(); ++rule) {
    if (!page.sources().rules[rule].messages) continue;
    for (std::size_t i = 0; i < observe::kMessageOutcomes; ++i) {
      const auto index = page.sources().rules[rule].index;
      const auto outcome = static_cast<observe::MessageOutcome>(i);
      messages.add({{"outcome", observe::kMessageOutcomeNames[i]}, {"rule", page.sources().rules[rule].name}},
                   page.sum([&](const Counters& c) { return c.messages(index, outcome).value(); }));
    }
  }
  page.put(messages);
}

void write_load(MetricsPage& page) {
  if (!page.sources().load) return;
  Family load = page.gauge("weir_load",
                           "Load of the busiest worker, from 0 to 1, by kind; elastic limits depend on it.");
  for (const auto& [kind, value] : page.sources().load()) load.add({{"kind", kind}}, value);
  page.put(load);
}

void write_decisions(MetricsPage& page) {
  Family decisions = page.counter("weir_decisions_total", "Decisions of each rule on requests, by outcome.");
  for (std::size_t rule = 0; rule < page.sources().rules.size(); ++rule)
    for (std::size_t i = 0; i < observe::kRuleOutcomes && !page.sources().rules[rule].paces; ++i) {
      const auto index = page.sources().rules[rule].index;
      const auto outcome = static_cast<observe::RuleOutcome>(i);
      decisions.add({{"outcome", observe::kRuleOutcomeNames[i]}, {"rule", page.sources().rules[rule].name}},
                    page.sum([&](const Counters& c) { return c.decisions(index, outcome).value(); }));
    }
  page.put(decisions);
  page.total(&Counters::store_failures, "weir_store_failures_total",
             "Decisions and charges of streams that Redis did not answer in time.");
}

}  // namespace

void write_rules_metrics(MetricsPage& page) {
  write_decisions(page);
  write_settlements(page);
  write_messages(page);
  write_bandwidth(page);
  write_penalties(page);
  write_factors(page);
  write_load(page);
}

}  // namespace weir::admin
