// Which requests need the claims of their token, and what it means for a rule that they are not there. A
// signature costs more than all else that a request is decided by, so a token is verified only if a rule that
// applies counts by a claim, and no rule that needs none refuses before. Pure.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/rule.hpp"

#include <optional>
#include <span>

namespace weir::policy {

// Returns true if the request has a token that is not verified yet, and the digest of the pattern may depend
// on its claims: a part has an alternative that is a claim, and none before it is present.
[[nodiscard]] bool needs_claims(const KeyPattern& pattern, const Request& request);
// The same of a rule that may apply; of one that queues also if its queue would know the client by a claim.
[[nodiscard]] bool needs_claims(const Rule& rule, const Request& request);
// Returns true if one of the rules does.
[[nodiscard]] bool needs_claims(std::span<const Rule> rules, const Request& request);

// Returns why a part of a key is missing, if a token was to say it. REQUIRES that the token is verified.
[[nodiscard]] std::optional<TokenFault> token_fault_behind(const KeyPart& part,
                                                           const ClientIdentity& client) noexcept;

}  // namespace weir::policy
