// Evaluates one request. First collects the charges of all rules that apply; these lists of charges are the
// bills. Then decides by the outcomes of the charges.
//
//   collect ─► local charges  ─► KeyTable::charge ─┐
//           └► remote charges ─► one call to Redis ─┴► decide
//
// Pure. Belongs to one exchange. The caller (proxy::AdmissionController) sends the bills to the key table and
// to Redis.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/bill.hpp"
#include "weir/policy/naming.hpp"
#include "weir/policy/rule_list.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <boost/container/static_vector.hpp>

namespace weir::policy {

// Returns the first part of the rule's key for which the request has no value; null if the request has a
// value for every part.
[[nodiscard]] const KeyPart* missing_part(const Rule& rule, const Request& request);

// Returns the first part of the rule's key for which the request has several different values. Returns
// nullopt if the request has different values for no part.
[[nodiscard]] std::optional<Ambiguity> ambiguity_in_key(const Rule& rule, const Request& request);

// Why weir rejects a request before it checks any limit. Usually an enforced rule needs a value that the
// request lacks or has in an invalid form, so the client is at fault.
struct Rejection {
  const Rule* rule = nullptr;     // null: no rejection
  const KeyPart* part = nullptr;  // the missing part; null: the cause is one of the members below
  // Why weir cannot read the body, if that is the cause of the rejection; otherwise Whole.
  RequestBody::State body = RequestBody::State::Whole;
  // Set if the request has several different values for a key, a cost or a condition.
  std::optional<Ambiguity> ambiguity{};
  JsonFault json = JsonFault::None;   // why weir found no cost in the JSON body
  http::Excess excess{};              // the exceeded bound, if a bound caused `ambiguity`
  std::optional<TokenFault> token{};  // why the token lacks `part`; set only if `part` is a claim
  // True: more rules apply to the request than weir can charge (limit::kMaxCharges). `rule` is the first rule
  // that does not fit.
  bool too_many_rules = false;

  explicit operator bool() const noexcept { return rule != nullptr; }
};
// Returns the status of the response to the client:
// * 401: a credential is missing (api_key, user, org, service, claim, cert).
// * 413: the body is too long.
// * 415: the body is compressed or otherwise encoded.
// * 503: too many rules apply, or the keys of a token's issuer are not available.
// * 400: every other rejection.
[[nodiscard]] unsigned status_of(const Rejection& rejection) noexcept;
// Returns the sentence that tells the client why weir rejects the request. The text needs no escaping in
// JSON.
[[nodiscard]] std::string describe(const Rejection& rejection);
// Returns true if weir rejects the request because servers may read its path in several ways.
[[nodiscard]] bool is_about_path(const Rejection& rejection) noexcept;
// Returns the sentence that tells the client which bound the request exceeds. REQUIRES: a bound is exceeded.
[[nodiscard]] std::string describe(const http::Excess& excess);

enum class Verdict : std::uint8_t {
  Forward,  // forward at once
  Delay,    // forward at `start_at`
  Reject,   // send the refusal of `rule`
};

struct Decision {
  Verdict verdict = Verdict::Forward;
  base::TimePoint start_at{};  // for Delay: when to forward
  // The rule that the rate limit headers report. If weir rejects the request, this is the rule with the
  // longest retry_after. Otherwise it is the rule with the smallest remaining share (remaining ÷ quota). Null
  // if no enforced rule applied.
  const Rule* rule = nullptr;
  // the limiter of `rule` whose limit and remaining units clients see
  const limit::Limiter* limiter = nullptr;
  limit::Outcome outcome;            // the outcome of `limiter`
  bool exceeded = false;             // true: admitted, but above the limit that clients see (soft limit)
  const Rule* delayed_by = nullptr;  // for Delay: the rule with the latest departure
};

class Evaluation {
 public:
  // Collects the charges of all rules that apply: computes the keys, and reads the cost of the request.
  // Returns the first rejection of an enforced rule; if there is one, `local`, `remote` and `paced` are
  // empty. Omits shadow rules that have a rejection. The bills `local` and `remote` together hold at most
  // kMaxCharges charges. Adds shadow rules last, so that they never take the place of an enforced rule.
  //
  // A rule with descriptor_keys adds a charge for each descriptor to which it applies. Descriptors with the
  // same key share one charge, which has the sum of their costs.
  //
  // Causes of a rejection are a missing key with on_missing = "reject", an invalid cost, an unreadable body,
  // an ambiguous value, and too many rules. REQUIRES: the first wanted_body() bytes of the body were read.
  Rejection collect(RuleList rules, const Request& request, const NamingKeys& keys);

  // Does the same as collect(), but only for rules that need no body. May be called before the body arrives.
  Rejection collect_by_head(RuleList rules, const Request& request, const NamingKeys& keys);

  // Does the same as collect(), but only for rules that need neither the body nor the claims of an unverified
  // token.
  Rejection collect_unverified(RuleList rules, const Request& request, const NamingKeys& keys);

  // Does the same as collect(), but only for rules that pace bodies (Rule::bandwidth). If one of these rules
  // has a rejection, collects nothing.
  void collect_paced(RuleList rules, const Request& request, const NamingKeys& keys);

  // Does the same as collect() for a single rule, which may be in shadow mode. Adds the rule's charges if the
  // rule applies and has no rejection.
  Rejection collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys);

  Bill local;   // the charges to make in this process's key table
  Bill remote;  // the charges to make in Redis
  // The keys of the rules that pace bodies (Rule::bandwidth). kMaxCharges bounds the charges and these keys
  // together.
  struct PacedKey {
    const Rule* rule;
    limit::Key key;
  };
  boost::container::static_vector<PacedKey, limit::kMaxCharges> paced;

  void clear() noexcept {
    local.clear();
    remote.clear();
    paced.clear();
  }

  // Decides what happens to the charges that Redis could not make. `unanswered`: the positions of these
  // charges in `remote`. If one of these charges belongs to an enforced rule with on_store_failure =
  // "closed", adds nothing and returns that rule. Otherwise returns null, and adds the charges of rules with
  // on_store_failure = "local" to `fallback`, under their keys in the key table. The remaining charges are
  // not made.
  //
  // The caller may have put the local charges of the request into `fallback`, so that the key table makes all
  // these charges or none. REQUIRES: `fallback` has at most kMaxCharges charges afterwards.
  const Rule* fall_back(const Request& request, const NamingKeys& keys, Bill& fallback,
                        limit::ChargeSet unanswered = ~limit::ChargeSet{0}) const;

 private:
  Rejection collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  Rejection add_rule(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  Rejection add_descriptors(const Rule& rule, const Request& request, const NamingKeys& keys);
  template <class Takes>
  Rejection collect_those(RuleList rules, const Request& request, const NamingKeys& keys, Takes takes);
};

// Returns how long the rule will go on refusing the request: `retry_after`, or less if the rule's hours end
// earlier.
[[nodiscard]] base::Duration wait_under(const Rule& rule, base::Duration retry_after,
                                        base::TimePoint now) noexcept;

// Combines the outcomes of all bills, except shadow charges. Decision::rule points to a rule of a bill.
// * If any outcome is a refusal, the decision is Reject and reports the refusal with the longest wait.
// * Otherwise, if any outcome has a delay, the decision is Delay, by the longest delay.
// * Otherwise the decision admits the request at once.
//
// Without a refusal, the decision reports the limit with the smallest remaining share (remaining ÷ quota,
// compared exactly), and the first of them if several have the same share. For a soft limit, this is the
// share of the limit that clients see.
[[nodiscard]] Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept;

// Does the same as decide(), but only with the charges that concern one descriptor of a question: those of
// the descriptor, and those of the whole question. `descriptor`: its index in Request::descriptors.
//
// If any descriptor is refused, nothing is charged, but the outcomes of admitted charges are as if they were
// made. So this function adds the uncharged units to `remaining`. It does not correct `reset_after`, which is
// then too long.
[[nodiscard]] Decision decide_for_descriptor(std::span<const Bill* const> bills, base::TimePoint now,
                                             std::size_t descriptor) noexcept;

// Returns the enforced charge with the longest delay; if several have this delay, the first of them. If the
// decision is Delay, the request waits for the departure of this charge. The bill is null if there is no
// enforced charge.
[[nodiscard]] ChargeRef longest_delay(std::span<const Bill* const> bills) noexcept;

}  // namespace weir::policy
