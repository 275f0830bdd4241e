// The system's time zones as calendars (limit/calendar.hpp). Read once, when the configuration is.
#pragma once

#include "weir/base/result.hpp"
#include "weir/limit/calendar.hpp"

#include <memory>
#include <string>

namespace weir::app {

// Days and months of a zone of the IANA time zone database, as "Europe/Berlin" or "UTC", until the year 2150;
// after it clocks stay as they are. The error says that there is no such zone. Touches no global state of the
// C library.
[[nodiscard]] base::Result<std::shared_ptr<const limit::Calendar>> load_calendar(const std::string& zone);

}  // namespace weir::app
