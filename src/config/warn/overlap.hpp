// How the requests that two conditions take lie to each other: which rules stand below a route in `weir
// check`, and which routes are never reached.
#pragma once

#include "weir/policy/match.hpp"

namespace weir::app {

// Whether it is plain that no request meets both. False where that takes thinking.
[[nodiscard]] bool plainly_disjoint(const policy::Match& a, const policy::Match& b);

// Whether it is plain that every request which meets `narrow` meets `wide` as well. False likewise.
[[nodiscard]] bool plainly_covers(const policy::Match& wide, const policy::Match& narrow);

}  // namespace weir::app
