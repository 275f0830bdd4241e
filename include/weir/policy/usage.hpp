// The limits of one client, which a route with `respond = "usage"` shows to it. Pure; the caller reads the
// state of the limits from the key table and from Redis, without a charge.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/naming.hpp"
#include "weir/policy/rule.hpp"

#include <span>
#include <string>
#include <vector>

namespace weir::policy {

// A limit of the client. Points to the rule; the rules must outlive it.
struct UsageLine {
  const Rule* rule;
  AppliedLimiter applied;
  limit::Charge charge;      // cost 0: asks for the state only
  limit::Outcome outcome{};  // set by the caller
  bool known = false;        // set by the caller; false: the rule's store did not answer
};

// Returns the enforced rules that count this client alone, with the client's key in each: the first
// limit::kMaxCharges of them. The rule's
// conditions on the client must hold: tier, country, ip and hours. Its other conditions do not matter. Leaves
// out rules whose key differs between the client's requests: those with route, method, path or upstream.
// Leaves out rules that several clients share, and rules whose key is only a name that a client may choose
// freely, such as a header field. Leaves out rules for whose key the request has no value, or
// several. REQUIRES: the request's token was verified if needs_claims_for_usage().
[[nodiscard]] std::vector<UsageLine> usage_lines(std::span<const Rule> rules, const Request& request,
                                                 const NamingKeys& keys);

// Returns true if a rule that usage_lines() may return needs claims of the request's token.
[[nodiscard]] bool needs_claims_for_usage(std::span<const Rule> rules, const Request& request);

// Appends {"limits":[{"rule":…,"limit":…,…},…]}. docs/limiters.md names the members.
void append_usage_json(std::string& out, std::span<const UsageLine> lines);

}  // namespace weir::policy
