// Reads `adapt` of a [[rule]]: how the rule's limit follows the condition of an upstream.
#include "config/read/percentage.hpp"
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"
#include "weir/config/settings_needs.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::size_t kMostAdaptedVariants = 100;

// Returns true if the rule, one of its tiers or one of its overrides has a soft limit.
bool is_soft(const policy::Rule& rule) {
  const auto soft = [](const policy::Variant& variant) { return variant.soft.has_value(); };
  return rule.soft || std::any_of(rule.tiers.begin(), rule.tiers.end(), soft) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(), soft);
}

// Returns why the rule's limit cannot adapt. Returns an empty text if it can.
std::string obstacle_to_adapt(const TableReader& table, const policy::Rule& rule) {
  if (is_elastic(rule))
    return "found beside elastic (of the rule, a tier or an override); expected one of them";
  if (is_soft(rule)) return "found beside soft (of the rule, a tier or an override); expected one of them";
  if (table.mentions("lease"))
    return "found beside lease, whose units were taken under an earlier limit; expected one of them";
  if (table.mentions("penalty"))
    return "found beside penalty, which would punish clients while the upstream is unwell; expected one of "
           "them";
  if (std::holds_alternative<limit::LeakyBucket>(*rule.limiter))
    return "found beside leaky_bucket, which has promised departures at the configured rate; expected "
           "token_bucket, gcra, fixed_window, sliding_window, sliding_log or concurrency";
  if (std::holds_alternative<limit::SteppedBucket>(*rule.limiter))
    return "found beside refill = \"stepwise\", which refills whole amounts; expected refill = "
           "\"continuous\"";
  if (std::holds_alternative<limit::AdaptiveConcurrency>(*rule.limiter))
    return "found beside adaptive_concurrency, which adapts by itself; expected algorithm = \"concurrency\", "
           "or no adapt";
  if (const auto variants = rule.overrides.size() + rule.tiers.size(); variants > kMostAdaptedVariants)
    return "found beside " + std::to_string(variants) + " tiers and overrides; expected at most " +
           std::to_string(kMostAdaptedVariants) + " in a rule with adapt";
  return {};
}

std::string read_upstream(const TableReader& table, const Settings& settings) {
  auto name = table.text("upstream");
  const auto& all = settings.upstreams;
  const bool known =
      std::any_of(all.begin(), all.end(), [&](const auto& upstream) { return upstream.name == name; });
  if (known || !table.has("upstream")) return name;
  std::string names;
  for (const auto& upstream : all) names += (names.empty() ? "" : ", ") + in_quotes(upstream.name);
  table.mistake("upstream", "found " + in_quotes(name) + ", which is no upstream; expected " +
                                (names.empty() ? "the name of an [[upstream]]" : "one of " + names));
  return name;
}

limit::AdaptTerms read_terms_of(const TableReader& table) {
  limit::AdaptTerms terms;
  if (table.has("latency_above")) terms.latency_above = table.deadline("latency_above");
  if (table.has("errors_above"))
    terms.errors_above = read_percentage(table, "errors_above", {1, 99}).value_or(1);
  if (!table.mentions("latency_above") && !table.mentions("errors_above") && !table.flawed())
    table.mistake("",
                  "found no sign of an unwell upstream; expected latency_above = \"500ms\", errors_above = "
                  "\"5%\" or both");
  constexpr unsigned kStep = limit::percent_of(1);
  terms.floor = static_cast<limit::Factor>(
      read_percentage(table, "floor", {kStep, 100 - kStep, kStep}).value_or(kStep) / kStep);
  return terms;
}

// Makes the limiters for the reduced limits of a rule with `adapt`: one for each factor below kWholeFactor.
// Returns an empty text on success, or why a limiter cannot be made.
template <class Numbers>
std::string scale(Numbers& numbers, limit::Cost least) {
  const auto add = [&](const limit::Limiter& whole, policy::ScaledLimiters& all) -> std::string {
    for (limit::Factor factor = 1; factor < limit::kWholeFactor; ++factor) {
      auto limiter = limit::scaled(whole, factor, least);
      if (!limiter) return limiter.error().message;
      all.emplace_back(std::move(*limiter));
    }
    return {};
  };
  auto wrong = add(*numbers.limiter, numbers.scaled);
  if (wrong.empty() && numbers.local_share) wrong = add(**numbers.local_share, numbers.scaled_share);
  return wrong;
}

}  // namespace

void read_adapt(const TableReader& rule, const Settings& settings, bool numbers_are_sound,
                policy::Rule& into) {
  if (!rule.has("adapt")) return;
  if (const auto why = obstacle_to_adapt(rule, into); !why.empty()) return rule.mistake("adapt", why);
  const auto table = rule.table("adapt", schema::kAdapt);
  into.adapt = {.upstream = read_upstream(table, settings), .terms = read_terms_of(table)};
  if (!numbers_are_sound) return;  // after a mistake the limiters have arbitrary numbers
  auto wrong = scale(into, into.cost);
  for (auto* variants : {&into.overrides, &into.tiers})
    for (auto& variant : *variants)
      if (wrong.empty()) wrong = scale(variant, into.cost);
  if (!wrong.empty()) rule.mistake("adapt", "found a limit that cannot shrink: " + wrong);
}

}  // namespace weir::config
