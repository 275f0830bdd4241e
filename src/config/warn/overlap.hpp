// Compares the conditions of routes and rules (policy::Match). `weir check` uses these functions to list the
// rules of a route, and the routes that no request reaches.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"

namespace weir::config {

// Returns true if no request can meet both matches. A result of false proves nothing, because this
// function does not analyse all conditions.
[[nodiscard]] bool plainly_disjoint(const policy::Match& a, const policy::Match& b);
// Returns true if the rule applies to no request of the route. A result of false proves nothing.
[[nodiscard]] bool plainly_disjoint(const policy::Route& route, const policy::Rule& rule);

// Returns true if every request that meets `narrow` also meets `wide`. A result of false proves nothing,
// because this function does not analyse all conditions.
[[nodiscard]] bool plainly_covers(const policy::Match& wide, const policy::Match& narrow);

// Returns true if a listener of the configuration answers questions.
[[nodiscard]] bool answers_questions(const Settings& settings);
// Returns true if the rule applies to questions only.
[[nodiscard]] bool is_for_questions(const policy::Rule& rule);

}  // namespace weir::config
