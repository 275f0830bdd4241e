// A time zone of the IANA database: the local date and time of an instant, and the instants at which days and
// months begin.
//
// `load` reads a file of /usr/share/zoneinfo or of $TZDIR. A loaded zone is immutable: all threads may use it
// without a lock, and copies share it. A zone file lists clock changes and ends with a rule for all later
// ones; both apply.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace weir::base {

class TimeZone {
 public:
  TimeZone() noexcept = default;  // makes UTC

  // Loads "Europe/Zurich", "America/New_York" or "UTC". The error names the zone.
  [[nodiscard]] static Result<TimeZone> load(const std::string& name);

  [[nodiscard]] std::string name() const;

  struct Local {
    std::chrono::year_month_day date;
    std::chrono::weekday day;
    std::chrono::seconds since_midnight;  // local time of day, 0 to 86,399; fractions are cut off
  };
  [[nodiscard]] Local local(TimePoint instant) const noexcept;

  // A half-open interval: includes `begin`, excludes `end`.
  struct Span {
    TimePoint begin;
    TimePoint end;
  };
  // Return the calendar day or month that contains `instant`. Days and months follow each other without gap
  // or overlap, even if clocks change at midnight. A day begins when local clocks first show its date. If
  // clocks skip midnight or the whole date, the day begins at the skip. A day on which daylight saving time
  // changes has 23 to 25 hours.
  [[nodiscard]] Span day_of(TimePoint instant) const noexcept;
  [[nodiscard]] Span month_of(TimePoint instant) const noexcept;

  // Returns the first clock change after `instant`, or nullopt if the zone has no later change.
  [[nodiscard]] std::optional<TimePoint> change_after(TimePoint instant) const noexcept;

  // Returns the instant at which the day of `date` begins.
  [[nodiscard]] TimePoint start_of(std::chrono::year_month_day date) const noexcept;

  friend bool operator==(const TimeZone& a, const TimeZone& b) noexcept { return a.name() == b.name(); }

 private:
  struct Zone;

  std::shared_ptr<const Zone> zone_;  // immutable; every limiter shares it; null means UTC
};

}  // namespace weir::base
