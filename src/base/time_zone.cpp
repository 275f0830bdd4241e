// Uses cctz. Debian also has Howard Hinnant's tz.h 3.0.1, but that library ignores the rule for future clock
// changes at the end of a zone file. With tz.h, New York would have no summer time from 2038 on.
#include "weir/base/time_zone.hpp"

#include <algorithm>

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

namespace weir::base {

namespace {

using std::chrono::days;
using std::chrono::year_month_day;

// Returns true if `name` has the form of a name in the time zone database. cctz also accepts "file:…",
// "libc:localtime" and paths; weir does not.
bool is_zone_name(std::string_view name) noexcept {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  };
  return !name.empty() && name.front() != '/' && name != "localtime" &&
         std::all_of(name.begin(), name.end(), good);
}

std::chrono::sys_seconds whole_seconds(TimePoint instant) noexcept {
  return std::chrono::floor<std::chrono::seconds>(instant);
}

}  // namespace

struct TimeZone::Zone {
  cctz::time_zone zone;
  std::string name;
};

Result<TimeZone> TimeZone::load(const std::string& name) {
  TimeZone loaded;
  if (name == "UTC") return loaded;
  cctz::time_zone zone;
  if (!is_zone_name(name) || !cctz::load_time_zone(name, &zone))
    return Error{"\"" + name + "\" is not a time zone of this system; write one such as \"Europe/Zurich\""};
  loaded.zone_ = std::make_shared<const Zone>(Zone{zone, name});
  return loaded;
}

std::string TimeZone::name() const {
  return zone_ ? zone_->name : "UTC";
}

TimeZone::Local TimeZone::local(TimePoint instant) const noexcept {
  auto shown = whole_seconds(instant);
  if (zone_) shown += std::chrono::seconds(zone_->zone.lookup(shown).offset);
  const auto date = std::chrono::floor<days>(shown);
  return {year_month_day(date), std::chrono::weekday(date), shown - date};
}

std::optional<TimePoint> TimeZone::change_after(TimePoint instant) const noexcept {
  cctz::time_zone::civil_transition change;
  if (!zone_ || !zone_->zone.next_transition(whole_seconds(instant), &change)) return std::nullopt;
  return zone_->zone.lookup(change.to).trans;
}

TimePoint TimeZone::start_of(year_month_day date) const noexcept {
  if (!zone_) return std::chrono::sys_days(date);
  const cctz::civil_day midnight(int(date.year()), int(unsigned(date.month())), int(unsigned(date.day())));
  return cctz::convert(cctz::civil_second(midnight), zone_->zone);
}

}  // namespace weir::base
