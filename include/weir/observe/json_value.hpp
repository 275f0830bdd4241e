// Writes JSON values as text. Boost.JSON writes every fraction in scientific notation (28800.0 as 2.88E4), so
// weir uses these functions for all JSON values.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

namespace weir::observe {

// Returns the value as compact JSON with plain numbers (base/plain_number.hpp).
[[nodiscard]] std::string json_text(const boost::json::value& value);
[[nodiscard]] std::string json_text(const boost::json::object& object);

}  // namespace weir::observe
