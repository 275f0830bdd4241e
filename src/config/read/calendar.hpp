// Loads a time zone of the system as a calendar (limit/calendar.hpp), while the configuration is read.
#pragma once

#include "weir/base/result.hpp"
#include "weir/limit/calendar.hpp"

#include <memory>
#include <string>

namespace weir::config {

// Returns the days and months of a zone of the IANA time zone database, such as "Europe/Berlin" or "UTC". The
// calendar is exact up to the year 2150; in later years the offset from UTC stays the same. Returns an error
// if the zone does not exist. Changes no global state of the C library.
[[nodiscard]] base::Result<std::shared_ptr<const limit::Calendar>> load_calendar(const std::string& zone);

}  // namespace weir::config
