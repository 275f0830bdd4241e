// Evaluates one request: collects the charges of all rules that apply (the bills), and decides by their
// outcomes.
//
//   collect ─► local charges  ─► KeyTable::charge ─┐
//           └► remote charges ─► one call to Redis ─┴► decide
//
// Pure. Belongs to one exchange. The caller (proxy::AdmissionController) sends the bills to the stores.
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

// Returns the first part of the rule's key that the request lacks; null if it has all of them.
[[nodiscard]] const KeyPart* missing_part(const Rule& rule, const Request& request);

// Returns the first ambiguity in the rule's key: a part of the key for which the request has differing
// values.
[[nodiscard]] std::optional<Ambiguity> ambiguity_in_key(const Rule& rule, const Request& request);

// Why weir rejects a request before it checks any limit: an enforced rule needs a value that the request
// lacks or has in an invalid form. This is the client's fault.
struct Objection {
  const Rule* rule = nullptr;                           // null: no objection
  const KeyPart* part = nullptr;                        // the missing part; null: one of the causes below
  RequestBody::State body = RequestBody::State::Whole;  // why the body cannot be read; Whole: another cause
  std::optional<Ambiguity> ambiguity{};                 // values that differ
  JsonFault json = JsonFault::None;                     // why the JSON body names no cost
  http::Excess excess{};                                // the exceeded bound that caused `ambiguity`, if any
  std::optional<TokenFault> token{};                    // why the token lacks `part`, if it is a claim

  explicit operator bool() const noexcept { return rule != nullptr; }
};
// Returns the status of the response to the client. It is 401 for a missing credential (api_key, user, org,
// service, claim, cert) and 413 for a body that is too long. It is 415 for a compressed or otherwise encoded
// body, and 400 for every other objection.
[[nodiscard]] unsigned status_of(const Objection& objection) noexcept;
// Returns the sentence that tells the client why weir rejects the request. The text needs no escaping in
// JSON.
[[nodiscard]] std::string describe(const Objection& objection);
// Returns true if weir objects because servers may read the request's path in several ways.
[[nodiscard]] bool is_about_path(const Objection& objection) noexcept;
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
  // The rule that the rate limit headers report. For Reject: the rule with the longest retry_after.
  // Otherwise: the rule with the smallest remaining share (remaining ÷ quota). Null if no enforced rule
  // applied.
  const Rule* rule = nullptr;
  const limit::Limiter* limiter = nullptr;  // the limiter of `rule` that is reported to clients
  limit::Outcome outcome;                   // the outcome of `limiter`
  bool exceeded = false;                    // admitted, but over the soft limit of a rule
  const Rule* delayed_by = nullptr;         // for Delay: the rule with the latest departure
};

// The rule and the limiter of one charge in a bill.
struct RuleLine {
  const Rule* rule;
  AppliedLimiter applied;
};

// The charges of one request to one store. line(i), charges()[i] and outcomes()[i] describe the same charge.
// A shadow charge has `enforced` == false. In an elastic pair, the charge that decides nothing has `counted`
// == true. Code that counts requests by rule includes shadow charges and omits `counted` charges.
class Bill {
 public:
  // Adds a charge. Returns false if the bill is full (kMaxCharges).
  bool add(const RuleLine& line, const limit::Charge& charge);
  void clear() noexcept;
  // Removes the given charges and keeps the order of the others.
  void remove(limit::LineSet lines) noexcept;
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] std::span<const limit::Charge> charges() const noexcept {
    return {charges_.data(), charges_.size()};
  }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), outcomes_.size()}; }
  [[nodiscard]] std::span<const limit::Outcome> outcomes() const noexcept {
    return {outcomes_.data(), outcomes_.size()};
  }
  [[nodiscard]] const RuleLine& line(std::size_t i) const noexcept { return lines_[i]; }

 private:
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<RuleLine, limit::kMaxCharges> lines_;
  boost::container::static_vector<limit::Outcome, limit::kMaxCharges> outcomes_;
};

class Evaluation {
 public:
  // Finds the rules that apply, computes the names of their keys, and reads the cost of the request. Returns
  // the first objection of an enforced rule; both bills are then empty. Objections are: a missing key with
  // on_missing = "reject", an invalid cost, an unreadable body, and differing values. Omits a shadow rule
  // that objects. REQUIRES: at most kMaxCharges charges for each store; the body is read up to wanted_body()
  // bytes.
  Objection collect(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // Like collect(), but only for rules that the head alone decides. May be called before the body arrives.
  Objection collect_by_head(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // Like collect(), but only for rules that need neither the body nor the claims of an unverified token.
  Objection collect_unverified(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  // Like collect(), but for a single rule, which may be in shadow mode. Adds the rule's charges if it applies
  // and does not object.
  Objection collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys);

  Bill local;   // the charges to make in this process
  Bill remote;  // the charges to make in Redis

  // Handles charges that Redis could not take. Adds those with on_store_failure = "local" to `fallback`,
  // under the names that the key table uses, and omits those with "open". If an enforced charge has "closed",
  // adds nothing and returns the rule of that charge; otherwise returns null. `fallback` may already contain
  // local charges; the table then makes all charges or none. REQUIRES: `fallback` has at most kMaxCharges
  // charges afterwards. `unasked`: which charges of `remote` to handle.
  const Rule* fall_back(const Request& request, const NamingKeys& keys, Bill& fallback,
                        limit::LineSet unasked = ~limit::LineSet{0}) const;

 private:
  Objection collect_rule(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  Objection add_rule(const Rule& rule, const Request& request, const NamingKeys& keys, Namer& namer);
  template <class Takes>
  Objection collect_those(std::span<const Rule> rules, const Request& request, const NamingKeys& keys,
                          Takes takes);
};

// Returns how long the rule refuses: until the limiter admits the request, or until the rule's hours end if
// that is earlier.
[[nodiscard]] base::Duration wait_under(const Rule& rule, base::Duration retry_after,
                                        base::TimePoint now) noexcept;

// Combines the outcomes of all bills into one decision. If any outcome is a refusal, the decision is Reject,
// and reports the refusal that lasts longest. Otherwise the longest delay decides. For an admitted request,
// the decision reports the limit with the smallest share left (remaining ÷ quota, compared exactly). With a
// soft limit, the share of the limit that clients see is compared. Among equals, the first is reported.
// Ignores shadow charges. Decision::rule points to a rule of one of the bills.
[[nodiscard]] Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept;

// Returns the enforced charge with the longest delay, the first of equals. A request whose decision is Delay
// waits for this charge. The bill is null if there is no enforced charge.
struct BillLineRef {
  const Bill* bill = nullptr;
  std::size_t line = 0;
  friend bool operator==(const BillLineRef&, const BillLineRef&) = default;
};
[[nodiscard]] BillLineRef longest_delay(std::span<const Bill* const> bills) noexcept;

}  // namespace weir::policy
