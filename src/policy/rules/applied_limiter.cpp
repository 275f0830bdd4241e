#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

// Returns the factor, but at least the `floor` of the rule. Returns kWholeFactor if the rule does not adapt.
limit::Factor factor_within(const Rule& rule, limit::Factor factor) {
  return rule.adapt ? std::clamp(factor, rule.adapt->terms.floor, limit::kWholeFactor) : limit::kWholeFactor;
}

limit::Factor factor_for(const Rule& rule, const Request& request) {
  if (!rule.adapt || request.factors == nullptr) return limit::kWholeFactor;
  return factor_within(rule, request.factors->of(rule.index));
}

// In the following templates, `Numbers` is Rule or Variant: both have the members that this code reads.
template <class Numbers>
AppliedLimiter own_limiter(const Numbers& numbers, std::uint16_t variant,
                           limit::Factor factor = limit::kWholeFactor) {
  if (factor != limit::kWholeFactor) {
    const auto* scaled = numbers.scaled[factor - 1U].get();
    return {.limiter = scaled, .advertised = scaled, .variant = variant, .factor = factor};
  }
  return {numbers.soft ? numbers.soft->get() : numbers.limiter.get(), numbers.limiter.get(), variant};
}

AppliedLimiter elastic_limiter(const Elastic& elastic, std::uint16_t variant) {
  return {elastic.limiter.get(), elastic.limiter.get(), variant, true, true};
}

template <class Numbers>
AppliedLimiter applied(const Numbers& numbers, std::size_t variant, double load, limit::Factor factor) {
  const auto number = static_cast<std::uint16_t>(variant);
  auto own = own_limiter(numbers, number, factor);
  if (!numbers.elastic) return own;
  if (load < numbers.elastic->while_load_below) return elastic_limiter(*numbers.elastic, number);
  own.paired = true;
  return own;
}

// Calls `ask` with the rule itself if `variant` is 0, otherwise with the override or tier of this number.
template <class Ask>
AppliedLimiter ask_variant(const Rule& rule, std::uint16_t variant, Ask ask) {
  if (variant == 0) return ask(rule);
  const std::size_t place = variant - 1U;
  if (place < rule.overrides.size()) return ask(rule.overrides[place]);
  return ask(rule.tiers[place - rule.overrides.size()]);
}

template <class Numbers>
AppliedLimiter local_share(const Numbers& numbers, AppliedLimiter applied) {
  if (applied.elastic) {
    const auto& share = numbers.elastic->local_share;
    if (share) applied.limiter = applied.advertised = share->get();
  } else if (numbers.local_share && applied.factor != limit::kWholeFactor) {
    applied.limiter = applied.advertised = numbers.scaled_share[applied.factor - 1U].get();
  } else if (numbers.local_share) {
    applied.advertised = numbers.local_share->get();
    applied.limiter = numbers.soft_share ? numbers.soft_share->get() : applied.advertised;
  }
  return applied;
}

template <class Matches>
AppliedLimiter applied_limiter_where(const Rule& rule, const Request& request, Matches matches) {
  const auto factor = factor_for(rule, request);
  for (std::size_t i = 0; i < rule.overrides.size(); ++i)
    if (matches(rule.overrides[i].match)) return applied(rule.overrides[i], 1 + i, request.load, factor);
  if (!request.client.tier.empty())
    for (std::size_t i = 0; i < rule.tiers.size(); ++i)
      if (rule.tiers[i].tier == request.client.tier)
        return applied(rule.tiers[i], 1 + rule.overrides.size() + i, request.load, factor);
  return applied(rule, 0, request.load, factor);
}

}  // namespace

AppliedLimiter applied_limiter(const Rule& rule, const Request& request) {
  return applied_limiter_where(rule, request, [&](const Match& match) { return match.holds(request); });
}

AppliedLimiter applied_limiter_of_client(const Rule& rule, const Request& request) {
  return applied_limiter_where(
      rule, request, [&](const Match& match) { return match.is_about_clients() && match.holds(request); });
}

AppliedLimiter limiter_of(const Rule& rule, std::uint16_t variant, bool elastic, limit::Factor factor) {
  return ask_variant(rule, variant, [&](const auto& numbers) {
    if (numbers.elastic && elastic) return elastic_limiter(*numbers.elastic, variant);
    auto own = own_limiter(numbers, variant, factor_within(rule, factor));
    own.paired = numbers.elastic.has_value();
    return own;
  });
}

AppliedLimiter counted_limiter(const Rule& rule, const AppliedLimiter& applied) {
  auto other = ask_variant(rule, applied.variant, [&](const auto& numbers) {
    return applied.elastic ? own_limiter(numbers, applied.variant)
                           : elastic_limiter(*numbers.elastic, applied.variant);
  });
  other.paired = other.counted = true;
  return other;
}

AppliedLimiter local_limiter(const Rule& rule, const AppliedLimiter& applied) {
  return ask_variant(rule, applied.variant,
                     [&](const auto& numbers) { return local_share(numbers, applied); });
}

}  // namespace weir::policy
