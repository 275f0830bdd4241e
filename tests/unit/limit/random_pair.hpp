// Random pairs of limiters of one rule. Their limits are so small that traffic often exceeds both.
#pragma once

#include "unit/limit/random_case.hpp"

#include "weir/limit/charge.hpp"

#include <array>

namespace weir::limit {

struct RandomPair {
  std::array<Limiter, 2> limiters;
  bool alike;  // true: both limiters have the same period
  base::Duration period;

  // Returns a bill with one charge for each limiter. The limiter `decider` decides; the other one only counts
  // what `decider` admits.
  [[nodiscard]] std::array<Charge, 2> bill(LimiterId decider, Cost cost, RuleIndex rule,
                                           bool enforced = true) const {
    const auto line = [&](LimiterId limiter_id) {
      return Charge{.key = key_of(limiter_id, rule),
                    .limiter = &limiters[limiter_id],
                    .cost = cost,
                    .rule = rule,
                    .enforced = enforced && limiter_id == decider,
                    .limiter_id = limiter_id,
                    .counted = limiter_id != decider};
    };
    return {line(decider), line(1 - decider)};
  }
};

// Returns two windows or logs of the same kind.
inline RandomPair random_pair_of_windows(Dice& dice) {
  const auto algorithm = dice.between(0, 3);
  const auto buckets = dice.between(2, 5);
  const auto make = [&](Rate limit) -> Limiter {
    switch (algorithm) {
      case 0:
        return FixedWindow::make(limit).value();
      case 1:
        return SlidingWindow::make(limit).value();
      case 2:
        return SlidingLog::make(limit).value();
      default:
        return SlidingLog::make(limit, buckets).value();
    }
  };
  const Rate own{dice.between(1, 8), Duration(dice.between(5, 500))};
  const bool alike = !dice.one_in(4);
  const Rate more{own.count + dice.between(0, 12), alike ? own.period : Duration(dice.between(5, 500))};
  return {{make(own), make(more)}, alike, own.period};
}

}  // namespace weir::limit
