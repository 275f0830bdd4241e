// Answers of the admin listener, from JSON to lines for people. Pure.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

namespace weir::app {

// Of POST /api/explain: who asks, where it goes, a line for each rule, and the verdict.
[[nodiscard]] std::string explanation_report(const boost::json::object& said);
// Of /api/keys.
[[nodiscard]] std::string keys_report(const boost::json::object& said);

}  // namespace weir::app
