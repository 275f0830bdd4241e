#include "config/warn/capacity.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace weir::config {

namespace {

// Returns the highest cost of a request that the limits admit, including a soft or elastic limit. `Numbers`:
// policy::Rule, or the type of a tier or an override.
template <class Numbers>
std::uint64_t most_of(const Numbers& numbers) {
  auto most = most_at_once(numbers.limiter);
  if (numbers.soft) most = std::max(most, most_at_once(*numbers.soft));
  if (numbers.elastic) most = std::max(most, most_at_once(numbers.elastic->limiter));
  return most;
}

template <class Numbers>
bool admits(const Numbers& numbers, limit::Cost cost) {
  return admits_idle(numbers.limiter, cost) || (numbers.soft && admits_idle(*numbers.soft, cost)) ||
         (numbers.elastic && admits_idle(numbers.elastic->limiter, cost));
}

std::string_view key_of_capacity(const Method& method) {
  if (method.algorithm == Algorithm::AdaptiveConcurrency) return "max";
  return method.algorithm <= Algorithm::LeakyBucket ? key_of_burst_or_queue(method) : "limit";
}

}  // namespace

std::uint64_t most_at_once(const limit::Limiter& limiter) {
  const auto* gcra_core = limit::gcra_core(limiter);
  return gcra_core != nullptr ? gcra_core->largest_cost() : limit::quota(limiter);
}

std::uint64_t most_at_once(const policy::Rule& rule) {
  return most_of(rule);
}

bool admits_idle(const limit::Limiter& limiter, limit::Cost cost) {
  constexpr base::TimePoint kAnyTime{std::chrono::hours(1)};
  return cost <= most_at_once(limiter) || limit::step(limiter, {}, kAnyTime, cost).outcome.allowed;
}

void check_capacity(const TableReader& table, const Method& method, const policy::Rule& rule) {
  // Does not check rules whose requests state their own cost, because a request may state a lower cost.
  if (rule.cost_from.kind != policy::CostSource::Kind::None) return;
  const auto check = [&](const auto& numbers, const std::string& whose) {
    if (admits(numbers, rule.cost)) return;
    const auto most = std::to_string(most_of(numbers));
    table.mistake("cost", "found " + std::to_string(rule.cost) + ", but " + whose + " admits at most " +
                              most +
                              " at once, so every request would be refused; expected a cost of at most " +
                              most + ", or a larger " + std::string(key_of_capacity(method)));
  };
  check(rule, "the rule");
  for (const auto& variant : rule.overrides) check(variant, "its override for " + variant.match.describe());
  for (const auto& variant : rule.tiers) check(variant, "its tier " + in_quotes(variant.tier));
}

}  // namespace weir::config
