// Formats the states of limiters as JSON.
#pragma once

#include "weir/base/time.hpp"
#include "weir/policy/explanation.hpp"

#include <boost/json.hpp>

namespace weir::admin {

// Returns the duration in seconds as a number with decimals; null if the duration is kForever.
[[nodiscard]] boost::json::value seconds_json(base::Duration duration);

[[nodiscard]] boost::json::object limit_json(const policy::LimitState& state);
[[nodiscard]] boost::json::array texts_json(const std::vector<std::string>& texts);

}  // namespace weir::admin
