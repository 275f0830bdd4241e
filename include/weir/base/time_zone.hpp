// A time zone of the IANA database: the local date and time of an instant, and where days and months begin.
//
// `load` reads a file of /usr/share/zoneinfo or of $TZDIR. A loaded zone is immutable: all threads may use it
// without a lock, and copies share it. The file's rule for the future covers instants after its last entry.
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
  TimeZone() noexcept = default;  // UTC

  // Loads "Europe/Zurich", "America/New_York" or "UTC". The error names the zone.
  [[nodiscard]] static Result<TimeZone> load(const std::string& name);

  [[nodiscard]] std::string name() const;

  struct Local {
    std::chrono::year_month_day date;
    std::chrono::weekday day;
    std::chrono::seconds since_midnight;  // local time of day, 0 to 86,399; fractions are cut off
  };
  [[nodiscard]] Local local(TimePoint instant) const noexcept;

  // A half-open interval: `begin` belongs to it, `end` does not.
  struct Span {
    TimePoint begin;
    TimePoint end;
  };
  // Return the calendar day or month that contains `instant`. Consecutive spans never leave a gap and never
  // overlap, even if clocks change at midnight. A day begins when its date first appears, or at the instant
  // that skips its date. A day has 23 to 25 hours where daylight saving time changes.
  [[nodiscard]] Span day_of(TimePoint instant) const noexcept;
  [[nodiscard]] Span month_of(TimePoint instant) const noexcept;

  // Returns the first clock change after `instant`, or nullopt if no change follows.
  [[nodiscard]] std::optional<TimePoint> change_after(TimePoint instant) const noexcept;

  // Returns the instant at which the day of `date` begins.
  [[nodiscard]] TimePoint start_of(std::chrono::year_month_day date) const noexcept;

  friend bool operator==(const TimeZone& a, const TimeZone& b) noexcept { return a.name() == b.name(); }

 private:
  struct Zone;

  std::shared_ptr<const Zone> zone_;  // immutable; every limiter shares it; null means UTC
};

}  // namespace weir::base
