// The steps of charges that may be checks (Charge::cost is 0). A check has the outcome of current_outcome(),
// and leaves the state as it is.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/limit/settle.hpp"

#include <variant>

namespace weir::limit {

// Returns the result of step(). For a check (cost 0), returns the outcome of current_outcome() and an
// unchanged state.
[[nodiscard]] inline Step checked_step(const Limiter& limiter, const Cell& cell, base::TimePoint now,
                                       Cost cost) noexcept {
  if (cost != 0) [[likely]]
    return step(limiter, cell, now, cost);
  return {
      .outcome = current_outcome(limiter, cell, now), .next = cell, .drained_at = drained_at(limiter, cell)};
}

// Returns the answer of SlidingLog::ask(). For a check (cost 0): if one unit fits, the outcome of cost 0;
// otherwise the refusal of cost 1. `limiter`: the limiter of the log.
template <class Log>
[[nodiscard]] SlidingLog::Answer checked_ask(const Limiter& limiter, const Log& log, base::TimePoint now,
                                             Cost cost) noexcept {
  const auto& sliding = std::get<SlidingLog>(limiter);
  if (cost != 0) [[likely]]
    return sliding.ask(log, now, cost);
  auto none = sliding.ask(log, now, 0);
  if (log.total() == 0 || sliding.expiry_of(log.newest()) <= now) {
    none.outcome = full(limiter);
    return none;
  }
  const auto one = sliding.ask(log, now, 1);
  return one.outcome.allowed ? none : one;
}

}  // namespace weir::limit
