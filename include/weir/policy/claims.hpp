// Which requests need the claims of their token, and what a missing claim means for a rule. Verifying a
// signature costs more than the rest of a decision. So weir first evaluates the rules that need no claims. It
// verifies the token only if these admit the request and another rule that applies needs a claim. Pure.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>

namespace weir::policy {

// Returns true if the request has an unverified token and the pattern's digest may depend on its claims. The
// digest depends on a claim if a part has a claim among its alternatives, and the request has none of the
// alternatives before the claim.
[[nodiscard]] bool needs_claims(const KeyPattern& pattern, const Request& request);
// Returns true if a rule that may apply needs claims for its key or for the name of the client in its queue.
[[nodiscard]] bool needs_claims(const Rule& rule, const Request& request);
// Returns true if any of the rules needs claims.
[[nodiscard]] bool needs_claims(std::span<const Rule> rules, const Request& request);

// Returns why a part of a key is missing, if a token should have provided it. REQUIRES: the token was
// verified.
[[nodiscard]] std::optional<TokenFault> token_fault_behind(const KeyPart& part,
                                                           const ClientIdentity& client) noexcept;

}  // namespace weir::policy
