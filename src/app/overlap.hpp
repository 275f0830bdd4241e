// Whether a request may meet both of two conditions: which rules stand below a route in `weir check`.
#pragma once

#include "weir/policy/match.hpp"

namespace weir::app {

// Whether it is plain that no request meets both. False where that takes thinking.
[[nodiscard]] bool plainly_disjoint(const policy::Match& a, const policy::Match& b);

}  // namespace weir::app
