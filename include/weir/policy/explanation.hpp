// Why a request is treated as it is, as values for people: what each rule makes of it, and what comes of all
// of them. Pure; who asks the stores is somebody else.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/rule.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::policy {

// What one rule makes of a request before any state is looked at.
struct Meeting {
  const Rule* rule = nullptr;
  Objection objection{};           // it cannot say, and of an enforced rule that is the answer
  std::string why_not{};           // in words, why it does not apply; empty: it does
  std::vector<std::string> key{};  // its parts, where it applies: "user:ada"
  limit::Cost cost = 0;            // likewise
};
// One for each rule, in order.
[[nodiscard]] std::vector<Meeting> meet_all(std::span<const Rule> rules, const Request& request,
                                            const NamingKeys& keys);

// By what a limiter was chosen among a rule's: "tier pro", "override 1 (path /x)", "elastic"; empty: it is
// the rule's own.
[[nodiscard]] std::string describe_choice(const Rule& rule, const AppliedLimiter& applied);

// The state of one limiter's key, and what it says.
struct LimitState {
  std::string choice;           // describe_choice()
  std::string limiter;          // "token_bucket 10/s, burst 100"
  std::string store;            // "memory", "redis"
  std::string note;             // what is odd about where the answer is from; empty: nothing
  std::string digest;           // the key's name, as in the access log
  bool counted = false;         // it counts and decides nothing: the other one of an elastic pair
  bool known = false;           // the rest is; else its store could not be asked, and `note` says why
  limit::Outcome outcome{};     // of what was asked, or of nothing where the state alone is told
  std::uint64_t limit = 0;      // that clients are told of
  std::uint64_t remaining = 0;  // likewise
  std::size_t waiting = 0;      // requests in its queue
};
// `told`: the limiter of `applied` that clients are told of is what limit and remaining speak of.
[[nodiscard]] LimitState state_of(const Rule& rule, const AppliedLimiter& applied, const limit::Key& key,
                                  const limit::Outcome& outcome);

struct RuleExplanation {
  std::string name, mode, store, match;
  bool applies = false;
  std::string why{};                 // where it does not, or cannot be asked
  std::vector<std::string> key{};    // as Meeting::key
  std::vector<std::string> parts{};  // what the rule's key is made of, in the same order
  limit::Cost cost = 0;
  std::vector<LimitState> limits{};
};

struct ClientExplanation {
  std::string address, peer;
  bool peer_trusted = false;
  std::vector<std::pair<std::string, std::string>>
      attributes;  // "user" and "ada", as octet_text(); those that it has
};
[[nodiscard]] ClientExplanation explain_client(const ClientIdentity& client);

struct RouteExplanation {
  std::string name;                                         // empty: none matches
  std::string target;                                       // "upstream api", "answers 200"
  std::string assumed_host;                                 // where the question names none
  unsigned priority = 0;                                    // of the request on it
  std::vector<std::pair<std::string, std::string>> others;  // that were passed over, and why
};

struct VerdictExplanation {
  std::string verdict;  // "forward", "answer" (weir's own, behind all limits), "delay", "refuse"
  std::string why;      // in a sentence
  std::string rule;     // who refuses or delays; empty: none
  base::Duration delay{};
  base::Duration retry_after{};  // of "refuse"; zero: there is none to tell
  unsigned status = 0;           // 0: the upstream's
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
