// Decides which requests need the claims of their bearer token. Verifying a token's signature costs more than
// all other steps of a decision. So weir first evaluates the rules that need no claims. weir verifies the
// token only if these rules admit the request and another rule needs a claim. Pure.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rule_list.hpp"

#include <optional>
#include <span>

namespace weir::policy {

// Returns true if the request has an unverified token and the key's digest may depend on the token's claims.
// A key depends on claims if one of its parts has a claim as an alternative, and the request lacks all
// alternatives before the claim.
[[nodiscard]] bool needs_claims(const KeyPattern& pattern, const Request& request);
// Returns true if the rule may apply and needs claims: for its key, its conditions, its tiers and overrides,
// or for the client's name in its queue.
[[nodiscard]] bool needs_claims(const Rule& rule, const Request& request);
// Returns true if an unverified token decides whether the rule applies, or which of its tiers and overrides
// applies.
[[nodiscard]] bool depends_on_token(const Rule& rule, const Request& request);
// Returns true if any of the rules needs claims.
[[nodiscard]] bool needs_claims(RuleList rules, const Request& request);

// Returns what is wrong with the request's token if the request lacks this part of a key. Returns nullopt if
// no alternative of the part is a claim. REQUIRES: the token was verified.
[[nodiscard]] std::optional<TokenFault> token_fault_behind(const KeyPart& part,
                                                           const ClientIdentity& client) noexcept;

}  // namespace weir::policy
