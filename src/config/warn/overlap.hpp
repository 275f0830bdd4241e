// How the requests of two matches overlap. `weir check` uses it to list the rules of a route, and the routes
// that are never reached.
#pragma once

#include "weir/policy/match.hpp"

namespace weir::config {

// Returns true if it is certain that no request meets both. May return false if only a deeper analysis could
// tell.
[[nodiscard]] bool plainly_disjoint(const policy::Match& a, const policy::Match& b);

// Returns true if it is certain that every request that meets `narrow` meets `wide`. May return false
// likewise.
[[nodiscard]] bool plainly_covers(const policy::Match& wide, const policy::Match& narrow);

}  // namespace weir::config
