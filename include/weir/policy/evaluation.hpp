// A chain in progress: the bill of one request over all rules that apply, and the decision that comes of it.
//
//   collect ─► local lines  ─► KeyTable::charge ─┐
//           └► remote lines ─► one call to Redis ─┴► decide
//
// Pure; lives on the stack of one exchange. Who asks the stores is the shell's business (proxy::Gate).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <boost/container/static_vector.hpp>

#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/policy/rule.hpp"

namespace weir::policy {

// The keys that names are made under: `table` is random per process, `shared` comes from key_secret, so that all
// weirs in front of one Redis agree on names there.
struct NamingKeys {
  base::SipKey table;
  base::SipKey shared;
};

// The digest that names a client in a rule; nullopt when a part is missing (and on_missing is not "ip").
[[nodiscard]] std::optional<limit::Key> name_key(const Rule& rule, std::uint16_t variant, const Request& request,
                                                 base::SipKey key) noexcept;

enum class Verdict : std::uint8_t {
  Forward,  // go on at once
  Delay,    // go on at `start_at`
  Reject,   // answer `rule`'s refusal
};

struct Decision {
  Verdict verdict = Verdict::Forward;
  base::TimePoint start_at{};             // of Delay
  const Rule* rule = nullptr;             // who refused, who delays longest, or whose state is tightest; may be null
  const limit::Limiter* limiter = nullptr;  // the one of `rule`'s limiters that spoke
  limit::Outcome outcome;                 // what it said
};

// A line of the bill as the chain sees it.
struct Line {
  const Rule* rule;
  AppliedLimiter applied;
};

class Bill {  // the lines of one store
 public:
  // False when it is full (kMaxCharges).
  bool add(const Line& line, const limit::Charge& charge);
  void clear() noexcept;
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] std::span<const limit::Charge> charges() const noexcept { return {charges_.data(), charges_.size()}; }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), charges_.size()}; }
  [[nodiscard]] std::span<const limit::Outcome> outcomes() const noexcept {
    return {outcomes_.data(), charges_.size()};
  }
  [[nodiscard]] const Line& line(std::size_t i) const noexcept { return lines_[i]; }

 private:
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<Line, limit::kMaxCharges> lines_;
  std::array<limit::Outcome, limit::kMaxCharges> outcomes_;
};

class Evaluation {
 public:
  // Finds the rules that apply and names their keys. Returns the first rule whose key is missing with
  // on_missing = "reject", else null.
  const Rule* collect(std::span<const Rule> rules, const Request& request, const NamingKeys& keys);

  Bill local;   // to be charged in this process
  Bill remote;  // to be charged in Redis

  // The Redis lines could not be asked: moves those with on_store_failure = "local" into a bill to be charged in the
  // table, drops those that are "open", and returns the first enforced one that is "closed", else null.
  // `keys`: the fallback's lines are named under the table's key.
  const Rule* fall_back(const Request& request, const NamingKeys& keys, Bill& fallback) const;
};

// Folds the answers of every bill into one decision: a refusal wins (the longest retry_after is reported), else the
// longest delay, else the smallest share left. Shadow lines are left aside.
[[nodiscard]] Decision decide(std::span<const Bill* const> bills, base::TimePoint now) noexcept;

}  // namespace weir::policy
