// Prints JSON for people: one entry a line, but a short flat value stays on one line.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace weir::config {

// Returns the text with a line break at the end. Objects keep the order of insertion.
[[nodiscard]] std::string laid_out(const boost::json::value& value);

}  // namespace weir::config
