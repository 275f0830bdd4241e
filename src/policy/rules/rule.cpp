#include "weir/policy/rule.hpp"

#include <algorithm>

namespace weir::policy {

limit::Cost units_of(const Lease& lease, const limit::Limiter& limiter) noexcept {
  const auto quota = limit::quota(limiter);
  return std::min(lease.percent != 0 ? quota * lease.percent / 100 : lease.units, quota / 4);
}

// Hashes the text descriptions of the rule's conditions, key and cost, so that every weir process with the
// same configuration gets the same digest.
std::uint32_t digest_of_asks(const Rule& rule) {
  base::SipHash128 hash({});
  hash.part(rule.match.describe());
  hash.part(describe(rule.key));
  hash.part(static_cast<std::uint64_t>(rule.on_missing));
  hash.part(static_cast<std::uint64_t>(rule.store));
  hash.part(describe(rule.cost_from));
  hash.part(std::uint64_t{rule.cost_from.scale});
  if (rule.cost_from.kind != CostSource::Kind::None) hash.part(std::uint64_t{rule.cost});
  hash.part(rule.max_body);
  for (const auto& variant : rule.overrides) hash.part(variant.match.describe());
  for (const auto& variant : rule.tiers) hash.part(variant.tier);
  if (rule.settlement) {
    hash.part(describe_charge(*rule.settlement));
    hash.part(describe_cost(*rule.settlement));
    hash.part(std::uint64_t{rule.settlement->scale});
    hash.part(rule.settlement->max_body);
  }
  return static_cast<std::uint32_t>(hash.digest().lo);
}

}  // namespace weir::policy
