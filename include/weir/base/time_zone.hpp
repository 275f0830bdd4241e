// A time zone of the IANA database: the local date and time of an instant, and the instant at which a day
// begins.
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

  // Returns the first clock change after `instant`, or nullopt if the zone has no later change.
  [[nodiscard]] std::optional<TimePoint> change_after(TimePoint instant) const noexcept;

  // Returns the instant at which the day of `date` begins: when local clocks first show the date. If clocks
  // skip midnight or the whole date, the day begins at the skip.
  [[nodiscard]] TimePoint start_of(std::chrono::year_month_day date) const noexcept;

  friend bool operator==(const TimeZone& a, const TimeZone& b) noexcept { return a.name() == b.name(); }

 private:
  struct Zone;

  std::shared_ptr<const Zone> zone_;  // immutable; every limiter shares it; null means UTC
};

}  // namespace weir::base
