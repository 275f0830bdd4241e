// One charge of a request: the key, its rule, the cost and the limiter. A bill is the list of a request's
// charges to one store (the key table or Redis). A bill is charged as a whole or not at all.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/limit/penalty.hpp"

#include <cstdint>

namespace weir::limit {

// A key: the name of a client in a rule, as a digest under a secret key. The digest does not reveal the
// client.
using Key = base::Digest128;

// Identifies one version of a rule while weir runs, and so says how to interpret the stored state of a key. A
// reload that changes the limits of a rule gives the rule another RuleIndex. The member
// policy::Rule::rule_number has this number. The member policy::Rule::index has another number, which belongs
// to the rule's name and stays the same in a reload.
using RuleIndex = std::uint16_t;
inline constexpr std::size_t kMaxRules = 2048;

// Identifies one of a rule's limiters. The rule itself, each tier, each override and each elastic limit has
// its own limiter, and each limiter counts separately.
using LimiterId = std::uint32_t;

// The maximum number of charges in the bill of one request.
inline constexpr std::size_t kMaxCharges = 32;

struct Charge {
  Key key;
  const Limiter* limiter;  // not null; owned by the rule set, which outlives the charge
  // The units to charge. 0: the charge is a check. Its outcome says whether a charge of one unit would be
  // admitted, and how many units remain now. A check refuses its bill like any charge, but never changes a
  // state, and its refusal is no violation (limit/penalty.hpp).
  Cost cost = 1;
  RuleIndex rule = 0;
  // False: the charge belongs to a shadow rule, which never rejects. The charge is made only if its own
  // limiter admits the request.
  bool enforced = true;
  // the limiter that is charged; keys without a slot in the table share one state for each limiter ID
  LimiterId limiter_id = 0;
  Cost lease = 0;  // Redis only: the most units that this process may take from Redis in advance; 0: none
  // True: the previous charge in the bill, which belongs to the same rule, decides whether the request is
  // admitted. This charge only counts an admitted request (limit/pair.hpp). A charge with `counted` set is
  // not `enforced`.
  bool counted = false;
  // The rule's penalty, or null. Owned by the rule. Only functions that decide on the charge read it.
  // Functions that change an earlier charge do not, because the rule may be gone by then.
  const Penalty* penalty = nullptr;
};

// Returns how many units the limiter must have left to admit the charge: its cost, or 1 for a check.
[[nodiscard]] constexpr Cost units_to_fit(const Charge& charge) noexcept {
  return charge.cost != 0 ? charge.cost : 1;
}

// Returns the name under which Redis keeps the penalty of `key`. In a cluster, this name selects the same
// node as `key`.
[[nodiscard]] constexpr Key penalty_key(const Key& key) noexcept {
  return {key.lo ^ 0x70656e61'6c747900, key.hi};
}

}  // namespace weir::limit
