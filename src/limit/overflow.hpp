// The cells that keys share once the table has no room for them: one a rule.
//
// A rule may have several limiters (its tiers and overrides), whose cells count in different units; so each
// shared cell knows whose units it is in, and is carried over when another of the rule's limiters asks.
//
// Owned by the key table. Every member REQUIRES that the caller holds `mutex`, which is locked after all
// shards'.
#pragma once

#include "weir/limit/charge.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

namespace weir::limit {

class Overflow {
 public:
  // The rule's cell, in the units of `limiter`.
  [[nodiscard]] Cell cell(RuleIndex rule, const Limiter& limiter) const noexcept {
    const Shared& shared = shared_[rule];
    if (!shared.units) return {};
    return *shared.units == limiter ? shared.cell : carry_over(*shared.units, shared.cell, limiter);
  }

  // Stores what a charge made of the cell. Two lines of one bill may meet here: the later state stands, which
  // holds at least what each of them took.
  void settle(RuleIndex rule, const Limiter& limiter, const Cell& next) noexcept {
    ++charges_;
    const Shared& shared = shared_[rule];
    if (shared.units && drained_at(*shared.units, shared.cell) > drained_at(limiter, next)) return;
    put(rule, limiter, next);
  }

  void put(RuleIndex rule, const Limiter& limiter, const Cell& cell) noexcept {
    shared_[rule] = {limiter, cell};
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t rule = 0; rule < kMaxRules; ++rule)
      if (shared_[rule].units) visit(static_cast<RuleIndex>(rule), *shared_[rule].units, shared_[rule].cell);
  }

  [[nodiscard]] std::uint64_t charges() const noexcept { return charges_; }

  mutable std::mutex mutex;

 private:
  struct Shared {
    std::optional<Limiter> units;
    Cell cell;
  };
  std::array<Shared, kMaxRules> shared_;
  std::uint64_t charges_ = 0;
};

}  // namespace weir::limit
