// A time zone of the IANA database: what clocks on its walls show at an instant, and where its days begin.
//
// Loaded once (that reads a file of /usr/share/zoneinfo, or of $TZDIR), immutable and pure from then on: any
// number of threads may ask, and none waits for another. Copies share what was loaded. Instants beyond the
// file's last entry follow its rule for the future.
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

  // "Europe/Zurich", "America/New_York", "UTC". An error names the zone.
  [[nodiscard]] static Result<TimeZone> load(const std::string& name);

  [[nodiscard]] std::string name() const;

  struct Local {
    std::chrono::year_month_day date;
    std::chrono::weekday day;
    std::chrono::seconds since_midnight;  // as the clock shows it, 0 to 86,399; fractions cut off
  };
  [[nodiscard]] Local local(TimePoint instant) const noexcept;

  // From `begin`, included, to `end`, not included.
  struct Span {
    TimePoint begin;
    TimePoint end;
  };
  // The calendar day or month that an instant lies in. These spans follow each other without a gap or an
  // overlap, whatever clocks do at midnight: a day begins when its date is first shown, or at the instant
  // that skips it. A day has 23 to 25 hours where daylight saving changes.
  [[nodiscard]] Span day_of(TimePoint instant) const noexcept;
  [[nodiscard]] Span month_of(TimePoint instant) const noexcept;

  // The first instant after this one at which clocks there are put forward or back; nullopt: they never are.
  [[nodiscard]] std::optional<TimePoint> change_after(TimePoint instant) const noexcept;

  // When the day of this date begins.
  [[nodiscard]] TimePoint start_of(std::chrono::year_month_day date) const noexcept;

  friend bool operator==(const TimeZone& a, const TimeZone& b) noexcept { return a.name() == b.name(); }

 private:
  struct Zone;

  std::shared_ptr<const Zone> zone_;  // shared: immutable, and copied with every limiter; null is UTC
};

}  // namespace weir::base
