#include "weir/policy/saved_rule.hpp"

#include "policy/identity/override_identity.hpp"

#include "weir/policy/rules/applied_limiter.hpp"

#include <optional>

namespace weir::policy {

namespace {

using base::SipHash128;

// Collects the variants of one rule for a snapshot. A variant gets its name from the same values as the
// limiter's mark in name_key.cpp.
class VariantCollector {
 public:
  explicit VariantCollector(const Rule& rule)
      : store_(rule.store), saved_{.name = rule.name, .variants = {}} {}

  // Adds the limiters of the rule, of an override or of a tier. Must be called in the order of
  // AppliedLimiter::variant. `kind`: 0 for the rule, 1 for an override (named by its identity), 2 for a tier.
  template <class Numbers>
  void add(std::uint64_t kind, std::uint64_t identity, std::string_view tier, const Numbers& numbers) {
    const std::uint16_t variant = next_++;
    add_limiters(name_of(kind, identity, tier, false), limiter_id_of(variant, false),
                 {numbers.limiter.get(), in(numbers.local_share), in(numbers.soft), in(numbers.soft_share)},
                 enforced(numbers));
    if (!numbers.elastic) return;
    add_limiters(name_of(kind, identity, tier, true), limiter_id_of(variant, true),
                 {numbers.elastic->limiter.get(), in(numbers.elastic->local_share)},
                 store_ == Store::Redis && numbers.elastic->local_share ? in(numbers.elastic->local_share)
                                                                        : numbers.elastic->limiter.get());
  }
  void add_messages(const Rule& rule) {
    if (rule.messages)
      add_limiters(name_of(3, 0, "", false), message_limiter_id(rule), {rule.messages->limiter.get()},
                   rule.messages->limiter.get());
  }
  [[nodiscard]] limit::SavedRule take() && { return std::move(saved_); }

 private:
  static const limit::Limiter* in(const std::optional<limit::SharedLimiter>& limiter) {
    return limiter ? limiter->get() : nullptr;
  }
  // Returns the limiter that the key table enforces: the soft limit if there is one, otherwise the limit that
  // clients see. If the store is Redis and there is a local share, returns the local share of this limit.
  template <class Numbers>
  const limit::Limiter* enforced(const Numbers& numbers) const {
    if (store_ == Store::Redis && numbers.local_share)
      return numbers.soft_share ? in(numbers.soft_share) : in(numbers.local_share);
    return numbers.soft ? in(numbers.soft) : numbers.limiter.get();
  }
  static std::uint64_t name_of(std::uint64_t kind, std::uint64_t identity, std::string_view tier,
                               bool elastic) {
    SipHash128 hash({});
    hash.part(kind);
    hash.part(identity);
    hash.part(tier);
    hash.part(std::uint64_t{elastic});
    return hash.digest().lo;
  }
  // Adds the limiters of a variant. `enforced`: the limiter that the key table uses. The choice depends on
  // the rule's store, and on whether the variant has a soft limit or a local share.
  void add_limiters(std::uint64_t name, limit::LimiterId limiter_id,
                    std::initializer_list<const limit::Limiter*> limiters, const limit::Limiter* enforced) {
    SipHash128 hash({});
    hash.part(static_cast<std::uint64_t>(store_));
    for (const limit::Limiter* limiter : limiters) {
      hash.part(std::uint64_t{limiter != nullptr});
      if (limiter == nullptr) continue;
      hash.part(limit::fingerprint(*limiter).lo);
      saved_.limiters.push_back(limiter);
    }
    saved_.variants.push_back({name, hash.digest().lo, limiter_id, enforced});
  }

  Store store_;
  std::uint16_t next_ = 0;
  limit::SavedRule saved_;
};

limit::SavedRule saved_rule(const Rule& rule) {
  VariantCollector gathering(rule);
  gathering.add(0, 0, "", rule);
  const auto identities = override_identities(rule);
  for (std::size_t i = 0; i < identities.size(); ++i) gathering.add(1, identities[i], "", rule.overrides[i]);
  for (const auto& variant : rule.tiers) gathering.add(2, 0, variant.tier, variant);
  gathering.add_messages(rule);
  return std::move(gathering).take();
}

}  // namespace

std::vector<limit::SavedRule> saved_rules(std::span<const Rule> rules) {
  std::vector<limit::SavedRule> saved;
  saved.reserve(rules.size());
  for (const auto& rule : rules) saved.push_back(saved_rule(rule));
  return saved;
}

std::vector<limit::SharedLimiter*> all_limiters(Rule& rule) {
  std::vector<limit::SharedLimiter*> limiters;
  const auto add = [&](std::optional<limit::SharedLimiter>& limiter) {
    if (limiter) limiters.push_back(&*limiter);
  };
  const auto add_all = [&](auto& numbers) {
    limiters.push_back(&numbers.limiter);
    add(numbers.local_share);
    add(numbers.soft);
    add(numbers.soft_share);
    if (numbers.elastic) limiters.push_back(&numbers.elastic->limiter);
    if (numbers.elastic) add(numbers.elastic->local_share);
    for (auto* scaled : {&numbers.scaled, &numbers.scaled_share})
      for (auto& limiter : *scaled) limiters.push_back(&limiter);
  };
  add_all(rule);
  for (auto& variant : rule.overrides) add_all(variant);
  for (auto& variant : rule.tiers) add_all(variant);
  if (rule.messages) limiters.push_back(&rule.messages->limiter);
  return limiters;
}

}  // namespace weir::policy
