// Divides a resource that all rules share: the slots of a shard, or the chunks of logs. A place in this file
// is one slot or one chunk.
//
//   | part of A | part of B | part of C | first come, first served ... |
//
// A quarter of all places is reserved, in equal parts, one part for each rule. A rule first uses the places
// of its own part, then unreserved places while any are left. So no rule's keys can use up the places that
// another rule needs. An account counts the places that all versions of one rule hold. A reload may change
// the sizes of the parts, but does not free a place that is in use.
//
// Belongs to the object that owns the places. REQUIRES for every member: the caller holds that object's lock.
#pragma once

#include "weir/limit/charge.hpp"

#include <algorithm>
#include <bitset>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace weir::limit {

// The accounts of all rules (an account counts the slots or chunks that a rule holds), by RuleIndex.
struct QuotaAccounts {
  // The account of each rule version; the index of an element is the RuleIndex of the version. All versions
  // of a rule have one account. Its number is the RuleIndex of the newest version.
  std::vector<RuleIndex> of;
  std::bitset<kMaxRules> rules;  // the accounts that have a reserved part
  std::bitset<kMaxRules> logs;   // the accounts of rules that keep logs
};

// The number of slots or chunks that are reserved for each rule, and the number that all rules share.
struct QuotaSplit {
  std::uint32_t part = 0;
  std::uint32_t shared = std::numeric_limits<std::uint32_t>::max();
};

// Divides `places` slots or chunks, of which at most `usable` may be in use at once. A single rule needs no
// reserved part: it may use all places.
constexpr QuotaSplit split(std::size_t places, std::size_t usable, std::size_t rules) noexcept {
  if (rules < 2) return {};
  const std::size_t part = places / 4 / rules;
  return {static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(usable - part * rules)};
}

class Quota {
 public:
  // At the start, only a rule whose RuleIndex is below this number can take places. The functions
  // share_out() and add() can raise the bound.
  static constexpr std::size_t kFirst = 256;

  Quota() : by_rule_(kFirst), held_(kFirst), account_(kFirst) {
    std::iota(account_.begin(), account_.end(), RuleIndex{0});
  }

  // Sets the accounts of all rules. `entitled`: the accounts that have a reserved part, of split.part places.
  // REQUIRES: accounts.of has an element for each RuleIndex with which take() is called, and at least as many
  // elements as in the call before. Throws only std::bad_alloc.
  void share_out(const QuotaAccounts& accounts, const std::bitset<kMaxRules>& entitled, QuotaSplit split) {
    by_rule_.resize(accounts.of.size());
    held_.resize(accounts.of.size());
    account_ = accounts.of;
    entitled_ = entitled;
    split_ = split;
    beyond_ = 0;
    std::fill(held_.begin(), held_.end(), 0);
    for (std::size_t i = 0; i < by_rule_.size(); ++i) held_[account_[i]] += by_rule_[i];
    for (std::size_t i = 0; i < held_.size(); ++i) beyond_ += held_[i] - std::min(held_[i], part_of(i));
  }

  // Declares that `rule` uses `account` from now on. REQUIRES: `rule` holds no places. Throws only
  // std::bad_alloc.
  void add(RuleIndex rule, RuleIndex account) {
    const std::size_t size = std::max(account_.size(), rule + std::size_t{1});
    by_rule_.resize(size);
    held_.resize(size);
    while (account_.size() < size) account_.push_back(static_cast<RuleIndex>(account_.size()));
    account_[rule] = account;
  }

  [[nodiscard]] bool may_take(RuleIndex rule) const noexcept {
    assert(rule < account_.size());
    const auto account = account_[rule];
    return beyond_ < split_.shared || held_[account] < part_of(account);
  }
  void take(RuleIndex rule) noexcept {
    assert(rule < account_.size());
    const auto account = account_[rule];
    ++by_rule_[rule];
    if (held_[account]++ >= part_of(account)) ++beyond_;
  }
  void give_back(RuleIndex rule, std::uint32_t places = 1) noexcept {
    const auto account = account_[rule];
    const auto part = part_of(account);
    by_rule_[rule] -= places;
    if (held_[account] > part) beyond_ -= std::min(places, held_[account] - part);
    held_[account] -= places;
  }

  // Returns the number of slots or chunks that each version of a rule holds, by RuleIndex.
  [[nodiscard]] std::span<const std::uint32_t> by_rule() const noexcept { return by_rule_; }

 private:
  [[nodiscard]] std::uint32_t part_of(std::size_t account) const noexcept {
    return entitled_[account] ? split_.part : 0;
  }

  QuotaSplit split_;
  std::uint32_t beyond_ = 0;  // number of slots or chunks that all rules hold beyond their reserved parts
  std::vector<std::uint32_t> by_rule_;
  std::vector<std::uint32_t> held_;  // number of slots or chunks that each account holds
  std::vector<RuleIndex> account_;
  std::bitset<kMaxRules> entitled_;
};

}  // namespace weir::limit
