// The limits of one client. A route with `respond = "usage"` shows them to the client. Pure; the caller reads
// the state of the limits from the key table and from Redis, without a charge.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/naming.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <span>
#include <string>
#include <vector>

namespace weir::policy {

// A limit of the client. Points to the rule, which must outlive this object.
struct ClientLimit {
  const Rule* rule;
  AppliedLimiter applied;
  limit::Charge charge;      // a charge of cost 0, which only reads the state
  limit::Outcome outcome{};  // set by the caller
  bool known = false;        // set by the caller; false: the rule's store did not answer
};

// Returns the limits of the enforced rules that count this client alone, with the client's key in each rule.
// Returns at most limit::kMaxCharges limits. Includes a rule if its conditions on the client hold: tier,
// country, ip and hours. Ignores the rule's other conditions, and overrides with other conditions. REQUIRES:
// the request's token was verified if needs_claims_for_usage().
//
// Omits these rules:
// * Rules whose key differs between the client's requests: keys with route, method, path or upstream.
// * Rules whose key several clients share.
// * Rules whose key is only a name that a client may choose freely, such as a header field.
// * Rules for whose key the request has no value, or several values.
[[nodiscard]] std::vector<ClientLimit> limits_of_client(std::span<const Rule> rules, const Request& request,
                                                        const NamingKeys& keys);

// Returns true if a rule that limits_of_client() may return needs claims of the request's token.
[[nodiscard]] bool needs_claims_for_usage(std::span<const Rule> rules, const Request& request);

// Appends {"limits":[{"rule":…,"limit":…,…},…]}. docs/limiters.md names the members.
void append_usage_json(std::string& out, std::span<const ClientLimit> lines);

}  // namespace weir::policy
