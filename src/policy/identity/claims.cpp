#include "weir/policy/claims.hpp"

#include "policy/rules/descriptors.hpp"

#include "weir/policy/key_values.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

bool is_claim(Attribute kind, const ClientIdentity& client) noexcept {
  if (kind == Attribute::Claim) return true;
  if (client.source == nullptr) return false;
  const auto claimed = [](const Source& source) { return source.kind == Source::Kind::Claim; };
  switch (kind) {
    case Attribute::User:
      return claimed(client.source->user);
    case Attribute::Org:
      return claimed(client.source->org);
    case Attribute::Service:
      return claimed(client.source->service);
    case Attribute::Device:
      return claimed(client.source->device);
    case Attribute::Tier:
      return claimed(client.source->tier);
    default:
      return false;
  }
}

bool needs_claims(const KeyPart& part, const Request& request) {
  for (const auto& attribute : part) {
    if (has_value(attribute, request)) return false;
    if (is_claim(attribute.kind, request.client)) return true;
  }
  return false;
}

// Returns true if the token decides which override or tier of the rule applies.
bool is_chosen_by_token(const Rule& rule, const Request& request) {
  const auto awaits = [&](const Variant& variant) { return variant.match.awaits_token(request); };
  return (!rule.tiers.empty() && awaits_tier(request.client)) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(), awaits);
}

// Returns true if name_client() in priority.hpp would use a claim to name the client in the rule's queue.
bool is_queued_by_claim(const Rule& rule, const ClientIdentity& client) noexcept {
  if (client.key_vouched || !client.user.empty() || !is_claim(Attribute::User, client)) return false;
  const auto queues = [](const Variant& variant) { return limit::most_waiting(*variant.limiter) != 0; };
  return limit::most_waiting(*rule.limiter) != 0 ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(), queues) ||
         std::any_of(rule.tiers.begin(), rule.tiers.end(), queues);
}

}  // namespace

bool needs_claims(const KeyPattern& pattern, const Request& request) {
  return !request.client.token.empty() &&
         std::any_of(pattern.begin(), pattern.end(),
                     [&](const KeyPart& part) { return needs_claims(part, request); });
}

bool needs_claims(const Rule& rule, const Request& request) {
  if (request.client.token.empty()) return false;
  return any_descriptor(rule, request, [&](const Request& seen) {
    return (needs_claims(rule.key, seen) || is_queued_by_claim(rule, seen.client) ||
            depends_on_token(rule, seen)) &&
           rule.match.known(seen) != Match::Known::No;
  });
}

bool depends_on_token(const Rule& rule, const Request& request) {
  return rule.match.awaits_token(request) || is_chosen_by_token(rule, request);
}

bool needs_claims(RuleList rules, const Request& request) {
  return !request.client.token.empty() && std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return needs_claims(rule, request);
  });
}

std::optional<TokenFault> token_fault_behind(const KeyPart& part, const ClientIdentity& client) noexcept {
  const bool verifies = client.source != nullptr && client.source->tokens;
  if (!verifies || std::none_of(part.begin(), part.end(), [&](const AttributeRef& attribute) {
        return is_claim(attribute.kind, client);
      }))
    return std::nullopt;
  if (client.token_fault) return client.token_fault;
  return client.claims == nullptr ? TokenFault::Missing : TokenFault::Claim;
}

}  // namespace weir::policy
