// One line of a request's bill: which key of which rule pays how much, by which arithmetic. What stores are
// asked.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/limiter.hpp"

#include <cstdint>

namespace weir::limit {

// The name of a client in a rule: a keyed digest, so that what it was made of stays here.
using Key = base::Digest128;

// A number for a rule while weir runs. Of a charge: for the rule with its numbers, so that each says of a
// cell what it means.
using RuleIndex = std::uint16_t;
inline constexpr std::size_t kMaxRules = 256;

// Which of a rule's limiters that count apart: its tiers', its overrides', the elastic ones.
using Ledger = std::uint32_t;

// One request meets at most so many rules.
inline constexpr std::size_t kMaxCharges = 32;

struct Charge {
  Key key;
  const Limiter* limiter;  // not null; owned by the rule set, which outlives the charge
  Cost cost = 1;
  RuleIndex rule = 0;
  bool enforced = true;  // false: a shadow rule, evaluated apart and charged only if it would admit
  Ledger ledger = 0;     // keys of one ledger share a cell when the table is full
  Cost lease = 0;        // of Redis: most units of the key that a weir may take in advance; 0: none
  // It only counts what the line before it, of the same rule, decides (limit/pair.hpp). Not enforced.
  bool counted = false;
};

}  // namespace weir::limit
