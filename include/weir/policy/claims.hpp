// Which requests need the claims of their token, and what a missing claim means for a rule. Verifying a
// signature costs more than the rest of a decision. So a token is verified only if a rule that applies needs
// a claim, and no rule that needs none rejects the request first. Pure.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>

namespace weir::policy {

// Returns true if the request has an unverified token and the pattern's digest may depend on its claims. That
// is so if a part has a claim among its alternatives and no alternative before it is present.
[[nodiscard]] bool needs_claims(const KeyPattern& pattern, const Request& request);
// The same for a rule that may apply, also if its queue names clients by a claim.
[[nodiscard]] bool needs_claims(const Rule& rule, const Request& request);
// Returns true if any of the rules needs claims.
[[nodiscard]] bool needs_claims(std::span<const Rule> rules, const Request& request);

// Returns why a part of a key is missing, if a token should have provided it. REQUIRES: the token was
// verified.
[[nodiscard]] std::optional<TokenFault> token_fault_behind(const KeyPart& part,
                                                           const ClientIdentity& client) noexcept;

}  // namespace weir::policy
