// Where days and months begin in a time zone: an immutable table, made once when the configuration is read
// (from the system's time zones, config/read/calendar.hpp) and shared by the limiters that count by the
// calendar.
//
// A local day begins at its first instant: 23, 24 or 25 hours apart as clocks change; where a clock skips
// midnight, at the moment it does; where it meets midnight twice, at the first. Day d (counted from
// 1970-01-01) begins at d × 24 h − offset, and the offset is one for months on end, so the table is a list of
// runs of days. A day that a country skipped (Samoa, 2011-12-30) has no length.
//
// A lookup is two or three binary searches over a few hundred runs: no lock, no allocation, no clock.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::limit {

// From `start` on, until just before `end`.
struct Interval {
  base::TimePoint start, end;
  friend bool operator==(const Interval&, const Interval&) = default;
};

class Calendar {
 public:
  // The days from `first_day` on, until the next run, begin `offset` before midnight UTC.
  struct Run {
    std::int32_t first_day;
    std::chrono::seconds offset;
  };

  // REQUIRES runs in ascending order of days and of the instants where they begin, the first at or before day
  // −1 (every zone is on it by the epoch).
  Calendar(std::string zone, std::span<const Run> runs);

  [[nodiscard]] const std::string& zone() const noexcept { return zone_; }

  // The local day, or month, that holds `at`. REQUIRES at ≥ the epoch.
  [[nodiscard]] Interval day(base::TimePoint at) const noexcept;
  [[nodiscard]] Interval month(base::TimePoint at) const noexcept;

 private:
  struct Entry {
    std::int32_t first_day;
    std::int64_t offset;     // s
    base::TimePoint begins;  // first_day
  };
  [[nodiscard]] std::int32_t day_number(base::TimePoint at) const noexcept;
  [[nodiscard]] base::TimePoint start_of(std::int32_t day) const noexcept;

  std::string zone_;
  std::vector<Entry> entries_;
};

}  // namespace weir::limit
