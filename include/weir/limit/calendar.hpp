// The instants at which the days, weeks and months of a time zone begin. A Calendar is an immutable table.
// The configuration reader builds it once from the system's time zones (config/read/calendar.hpp). All
// limiters that count calendar days, weeks or months share it.
//
// A local day lasts until the next local day begins, so clock changes make days of 23 or 25 hours. If a clock
// skips midnight, the day begins at the skip. If a clock shows midnight twice, the day begins at the first of
// these two midnights. Day d (counted from 1970-01-01) begins at d × 24 h − offset. The offset stays the same
// for months, so the table lists runs: consecutive days with one offset. A skipped day (Samoa, 2011-12-30)
// has length zero.
//
// A lookup does two or three binary searches over a few hundred runs. It takes no lock and allocates nothing.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::limit {

// A half-open interval: contains `start` but not `end`.
struct Interval {
  base::TimePoint start, end;
  friend bool operator==(const Interval&, const Interval&) = default;
};

class Calendar {
 public:
  // A run is a series of consecutive days with the same offset. It lasts from `first_day` until the next run.
  // Each day d of the run begins at d × 24 h − `offset`.
  struct Run {
    std::int32_t first_day;
    std::chrono::seconds offset;
  };

  // Makes the calendar of the zone. REQUIRES: `runs` is sorted by first day, and by the instant at which that
  // day begins. The first run begins on day −1 or earlier, because at the epoch the local date of some zones
  // is day −1.
  Calendar(std::string zone, std::span<const Run> runs);

  [[nodiscard]] const std::string& zone() const noexcept { return zone_; }

  // Return the local day, week (from Monday) or month that contains `at`. REQUIRES: at ≥ the epoch.
  [[nodiscard]] Interval day(base::TimePoint at) const noexcept;
  [[nodiscard]] Interval week(base::TimePoint at) const noexcept;
  [[nodiscard]] Interval month(base::TimePoint at) const noexcept;

 private:
  struct Entry {
    std::int32_t first_day;
    std::int64_t offset;     // seconds
    base::TimePoint begins;  // the first instant of first_day
  };
  [[nodiscard]] std::int32_t day_number(base::TimePoint at) const noexcept;
  [[nodiscard]] base::TimePoint start_of(std::int32_t day) const noexcept;

  std::string zone_;
  std::vector<Entry> entries_;
};

}  // namespace weir::limit
