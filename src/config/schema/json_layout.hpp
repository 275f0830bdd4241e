// JSON for people: one entry a line, but what is short and simple stays on one.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace weir::app {

// Ends with a line break. Objects keep the order in which they were made.
[[nodiscard]] std::string laid_out(const boost::json::value& value);

}  // namespace weir::app
