// Prints JSON for people. Each entry has its own line, but a short object or array of scalars is on one line.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace weir::config {

// Returns the JSON text, with a line break at the end. The members of objects keep their order.
[[nodiscard]] std::string laid_out(const boost::json::value& value);

}  // namespace weir::config
