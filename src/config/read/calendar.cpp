#include "config/read/calendar.hpp"

#include "weir/base/time_zone.hpp"
#include "weir/config/config_errors.hpp"

namespace weir::config {

namespace {

constexpr std::int32_t kFirstDay = -2;     // in days since 1970-01-01; early enough for every time zone
constexpr std::int32_t kLastDay = 65'744;  // 2150-01-01

// Returns the zone's offset from UTC at the beginning of a local day. The offset is one hour if the day
// begins at 23:00 UTC of the day before. `day`: the date, in days since 1970-01-01.
std::chrono::seconds offset_of(const base::TimeZone& zone, std::int32_t day) {
  const std::chrono::sys_days midnight{std::chrono::days(day)};
  return std::chrono::floor<std::chrono::seconds>(midnight - zone.start_of(midnight));
}

}  // namespace

base::Result<std::shared_ptr<const limit::Calendar>> load_calendar(const std::string& name) {
  const auto zone = base::TimeZone::load(name);
  if (!zone)
    return base::Error{"found " + in_quotes(name) +
                       "; expected a time zone that this system knows, as \"Europe/Berlin\""};
  std::vector<limit::Calendar::Run> runs;
  for (std::int32_t day = kFirstDay; day <= kLastDay; ++day) {
    const auto offset = offset_of(*zone, day);
    if (runs.empty() || runs.back().offset != offset) runs.push_back({day, offset});
  }
  return std::make_shared<const limit::Calendar>(name, std::move(runs));
}

}  // namespace weir::config
