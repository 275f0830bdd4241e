// The charges of one request to one store, with the rule and the limiter of each charge.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/slot_hash.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <boost/container/static_vector.hpp>

namespace weir::policy {

// The rule and the limiter of one charge in a bill. Points to both; the rule set must outlive the bill.
struct ChargeSource {
  const Rule* rule;
  AppliedLimiter applied;
  // The descriptors of the question to which the rule applies: bit i stands for descriptor i. 0: the rule
  // applies to the whole request.
  std::uint32_t descriptors = 0;
  // For a rule with `overdraft`: the units that weir charges after the decision, whatever the decision is.
  // The charge in the bill only checks the limit, so its limit::Charge::cost is 0.
  limit::Cost overdraft = 0;
};

// The charges of one request to one store (the key table or Redis). source(i), charges()[i] and outcomes()[i]
// describe the same charge. The charge of a rule in shadow mode has `enforced` == false. An elastic rule
// makes two charges; one of them does not decide and has `counted` == true. Code that counts requests by rule
// must skip `counted` charges, but not shadow charges.
class Bill {
 public:
  // Adds a charge. Returns false if the bill is full (kMaxCharges).
  bool add(const ChargeSource& source, const limit::Charge& charge) {
    if (charges_.size() == limit::kMaxCharges) return false;
    charges_.push_back(charge);
    sources_.push_back(source);
    outcomes_.emplace_back();
    return true;
  }
  // Adds to an existing charge of the same rule, for the same `key`: adds `cost`, and the overdraft and the
  // descriptors of `source`. If the rule is elastic, both of its charges change. Returns the new cost of the
  // charge plus its new overdraft; nullopt if the rule has no charge for `key`.
  std::optional<limit::Cost> merge(const ChargeSource& source, const limit::Key& key,
                                   limit::Cost cost) noexcept;
  void clear() noexcept {
    charges_.clear();
    sources_.clear();
    outcomes_.clear();
  }
  // Removes all charges after the first `size`.
  void cut(std::size_t size) noexcept;
  // Removes the given charges. The other charges keep their order.
  void remove(limit::ChargeSet charges) noexcept;
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] std::span<const limit::Charge> charges() const noexcept {
    return {charges_.data(), charges_.size()};
  }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), outcomes_.size()}; }
  [[nodiscard]] std::span<const limit::Outcome> outcomes() const noexcept {
    return {outcomes_.data(), outcomes_.size()};
  }
  [[nodiscard]] const ChargeSource& source(std::size_t i) const noexcept { return sources_[i]; }

 private:
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges_;
  boost::container::static_vector<ChargeSource, limit::kMaxCharges> sources_;
  boost::container::static_vector<limit::Outcome, limit::kMaxCharges> outcomes_;
};

// Refers to one charge of a bill. `bill` is null if the function that returns this object found no charge.
struct ChargeRef {
  const Bill* bill = nullptr;
  std::size_t index = 0;
  friend bool operator==(const ChargeRef&, const ChargeRef&) = default;
};
// Returns the charge that logs show for the rule: its first charge that is refused, or its first charge if
// none is. A rule has several charges if it applies to several descriptors.
[[nodiscard]] ChargeRef charge_of(std::span<const Bill* const> bills, const Rule& rule) noexcept;

}  // namespace weir::policy
