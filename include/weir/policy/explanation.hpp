// Explains for people how weir treats a request: the result of each rule, and the resulting decision. Pure;
// the caller reads the state of the limits from the key table and from Redis.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::policy {

// The result of one rule for a request, before weir reads the state of any key.
struct RuleCheck {
  const Rule* rule = nullptr;
  // Why the rule rejects the request. The rejection by a shadow rule has no effect on the request.
  Rejection rejection{};
  std::string why_not{};           // why the rule does not apply, in words; empty if it applies
  std::vector<std::string> key{};  // the key's parts if the rule applies: "user:ada"
  limit::Cost cost = 0;            // the cost of the request, if the rule applies
};
// Returns the result of each rule, in order.
[[nodiscard]] std::vector<RuleCheck> check_all(std::span<const Rule> rules, const Request& request,
                                               const NamingKeys& keys);

// Returns in words which limiter of a rule was chosen, such as "tier pro", "override 1 (path /x)" or "50%
// because upstream api is unwell". Returns an empty text for the rule's own limiter as configured.
[[nodiscard]] std::string describe_choice(const Rule& rule, const AppliedLimiter& applied);

// The state of a key in one limiter.
struct LimitState {
  std::string choice;           // which limiter of the rule was chosen, in words (describe_choice())
  std::string limiter;          // such as "token_bucket 10/s, burst 100"
  std::string store;            // "memory", "redis"
  std::string note;             // a remark, such as why the state is not known; usually empty
  std::string digest;           // the key's name, as in the access log
  bool counted = false;         // true: the limiter is charged, but another limiter of the rule decides
  bool paces = false;           // true: paces bodies, and decides about no request (Rule::bandwidth)
  bool known = false;           // true: the members below are set; otherwise `note` says why they are not set
  limit::Outcome outcome{};     // the result for the request's cost, or for cost 0 if only the state is shown
  std::uint64_t limit = 0;      // the limit that clients see
  std::uint64_t remaining = 0;  // the remaining units that clients see
  std::size_t waiting = 0;      // requests in the limiter's queue
};
// Returns the state of a key. `limit` and `remaining` are the numbers that clients see (applied.advertised).
[[nodiscard]] LimitState state_of(const Rule& rule, const AppliedLimiter& applied, const limit::Key& key,
                                  const limit::Outcome& outcome);

struct RuleExplanation {
  std::string name, mode, store, match;
  bool applies = false;
  std::string why{};               // why the rule does not apply, or why Redis has no answer
  std::vector<std::string> key{};  // the key's parts if the rule applies: "user:ada"
  limit::Cost cost = 0;
  std::vector<LimitState> limits{};
};

struct ClientExplanation {
  std::string address, peer;
  bool peer_trusted = false;
  // Attributes and their values, such as {"user", "ada"}.
  std::vector<std::pair<std::string, std::string>> attributes;
};
[[nodiscard]] ClientExplanation explain_client(const ClientIdentity& client);

struct RouteExplanation {
  std::string name;          // name of the route; empty: no route matches
  std::string target;        // what the route does: "upstream api", "answers 200"
  std::string assumed_host;  // the host that weir assumed; set if the description names none
  unsigned priority = 0;     // the request's priority on this route
  // The other routes, each with the reason why it does not get the request.
  std::vector<std::pair<std::string, std::string>> others;
};

struct VerdictExplanation {
  // "forward", "answer" (weir itself answers, after all limits), "allow" (for a question), "delay", "refuse"
  std::string verdict;
  std::string why;   // the reason for the verdict, one sentence
  std::string rule;  // the rule that refuses or delays; empty: none
  base::Duration delay{};
  base::Duration retry_after{};  // set if the verdict is "refuse"; zero: the answer has no Retry-After
  unsigned status = 0;           // 0: the server chooses the status
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct Explanation {
  ClientExplanation client;
  RouteExplanation route;
  std::vector<RuleExplanation> rules;
  VerdictExplanation verdict;
};

}  // namespace weir::policy
