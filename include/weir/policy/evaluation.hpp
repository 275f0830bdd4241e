// A chain in progress: the bill of one request over all rules that apply, and the decision that comes of it.
//
//   collect ─► local lines  ─► KeyTable::charge ─┐
//           └► remote lines ─► one call to Redis ─┴► decide
//
// Pure; lives on the stack of one exchange. Who asks the stores is the shell's business (proxy::Gate).
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/naming.hpp"
#include "weir/policy/rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <boost/container/static_vector.hpp>

namespace weir::policy {

// The first part of the rule's key that the request does not have; null where it has all of them.
[[nodiscard]] const KeyPart* missing_part(const Rule& rule, const Request& request);

// What of the rule's key the request says in ways that differ, where that part counts.
[[nodiscard]] std::optional<Ambiguity> ambiguity_in_key(const Rule& rule, const Request& request);

// Why a request cannot be decided on: an enforced rule needs to know something that it does not say, or says
// wrongly. The client's fault.
struct Objection {
  const Rule* rule = nullptr;                           // null: there is none
  const KeyPart* part = nullptr;                        // what is missing; null: the cost is faulty, or
  RequestBody::State body = RequestBody::State::Whole;  // the body cannot be read, and why, or
  std::optional<Ambiguity> ambiguity{};                 // something is said in ways that differ, or
  bool too_deep = false;                                // the JSON that says the cost is nested too deep
  http::Excess excess{};                                // the bound that is behind `ambiguity`, if any
  std::optional<TokenFault> token{};                    // why `part` is missing, if a token was to say it

  explicit operator bool() const noexcept { return rule != nullptr; }
};
// Of the answer: 401 where a credential is missing (api_key, user, org, service, claim, cert), 413 and 415
// where the body is too long or coded, else 400.
[[nodiscard]] unsigned status_of(const Objection& objection) noexcept;
// The sentence of the answer; it needs no escaping in JSON.
[[nodiscard]] std::string describe(const Objection& objection);
// Whether it is that servers may read the request's path in several ways.
[[nodiscard]] bool is_about_path(const Objection& objection) noexcept;
// The same for a bound that a request exceeds. REQUIRES that there is one.
[[nodiscard]] std::string describe(const http::Excess& excess);

enum class Verdict : std::uint8_t {
  Forward,  // go on at once
  Delay,    // go on at `start_at`
  Reject,   // answer `rule`'s refusal
};

struct Decision {
  Verdict verdict = Verdict::Forward;
  base::TimePoint start_at{};  // of Delay
  // Whom the answer's headers speak of: on Reject who refused (the longest retry_after), else whose share
  // left is the smallest. Null when no enforced rule applied.
  const Rule* rule = nullptr;
  const limit::Limiter* limiter = nullptr;  // the one of `rule`'s limiters that clients are told of
  limit::Outcome outcome;                   // what it said, measured by that limiter
  bool exceeded = false;                    // admitted over a soft limit of any rule
  const Rule* delayed_by = nullptr;         // of Delay: whose departure is the latest
};

// A line of the bill as the chain sees it.
struct Line {
  const Rule* rule;
  AppliedLimiter applied;
};

// The lines of one store. Line i, charges()[i] and outcomes()[i] belong together; who counts per rule walks
// them, shadow lines (charges()[i].enforced is false) included, but not those that are only counted.
class Bill {
 public:
  // False when it is full (kMaxCharges).
  bool add(const Line& line, const limit::Charge& charge);
  void clear() noexcept;
  // Keeps the others alone, in their order.
  void remove(limit::LineSet lines) noexcept;
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] std::span<const limit::Charge> charges() const noexcept {
    return {charges_.data(), charges_.size()};
  }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), outcomes_.size()}; }
  [[nodiscard]] std::span<const limit::Outcome> outcomes() const noexcept {
    return {outcomes_.data(), outcomes_.size()};
  }
  [[nodiscard]] const Line& line(std::size_t i) const noexcept { return lines_[i]; }

 private:
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<Line, limit::kMaxCharges> lines_;
  boost::container::static_vector<limit::Outcome, limit::kMaxCharges> outcomes_;
};

class Evaluation {
 public:
  // Finds the rules that apply, names their keys and reads what the request costs. Returns the first
  // objection of an enforced rule: a key missing with on_missing = "reject", a faulty cost, a body that it
  // has to read and cannot, or what it asks for said in ways that differ (both bills are then empty). A
  // shadow rule that would object is left out. REQUIRES at most kMaxCharges rules a store, and as much of the
  // body as they want (wanted_body).
  Objection collect(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // The same of the rules alone that its head decides on, while its body is still to come.
  Objection collect_by_head(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // The same of those rules alone that need neither a body nor the claims of a token which is not verified.
  Objection collect_unverified(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // The same of one rule, whatever its mode: adds its lines where it applies, none where it objects.
  Objection meet(const Rule& rule, const Request& request, const NamingKeys& keys);

  Bill local;   // to be charged in this process
  Bill remote;  // to be charged in Redis

  // The Redis lines could not be asked: adds those with on_store_failure = "local" to a bill to be charged in
  // the table, leaves out those that are "open", and returns the first enforced one that is "closed" (nothing
  // is added then), else null. `fallback` may hold local lines already, so that all are charged or none;
  // together they are at most kMaxCharges. `keys`: the fallback's lines are named under the table's key.
  // `unasked`: which of them could not be.
  const Rule* fall_back(const Request& request, const NamingKeys& keys, Bill& fallback,
                        limit::LineSet unasked = ~limit::LineSet{0}) const;

 private:
  Objection meet(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  Objection meet_rule(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  template <class Takes>
  Objection collect_those(std::span<const Rule> rules, const Request& request, const NamingKeys& keys,
                          Takes takes);
};

// How long a rule's refusal lasts: as long as its limiter says, or until the rule's hours are over.
[[nodiscard]] base::Duration wait_under(const Rule& rule, base::Duration retry_after,
                                        base::TimePoint now) noexcept;

// Folds the answers of every bill into one decision: a refusal wins (the longest that lasts is reported),
// else the longest delay. Admitted, the smallest share left (remaining ÷ quota, compared exactly) speaks; of
// a soft limit the share of what clients are told of. Among equals the first met. Shadow lines are left
// aside. The same `rule` pointers as in the bills.
[[nodiscard]] Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept;

// The enforced line that delays longest, the first among equals: what a decision of Delay waits for. The bill
// is null where there is no enforced line.
struct BillLine {
  const Bill* bill = nullptr;
  std::size_t line = 0;
  friend bool operator==(const BillLine&, const BillLine&) = default;
};
[[nodiscard]] BillLine longest_delay(std::span<const Bill* const> bills) noexcept;

}  // namespace weir::policy
