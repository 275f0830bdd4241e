#include "weir/limit/calendar.hpp"

#include <algorithm>
#include <cassert>

namespace weir::limit {

namespace {

constexpr std::int64_t kDay = 86'400;  // seconds

base::TimePoint midnight(std::int64_t day, std::int64_t offset) {
  return base::TimePoint(std::chrono::seconds(day * kDay - offset));
}

}  // namespace

Calendar::Calendar(std::string zone, std::span<const Run> runs) : zone_(std::move(zone)) {
  for (const auto& [first_day, offset] : runs)
    entries_.push_back({first_day, offset.count(), midnight(first_day, offset.count())});
  assert(!entries_.empty() && entries_.front().first_day <= -1);
}

// Returns the local day that contains `at`, as days since 1970-01-01.
std::int32_t Calendar::day_number(base::TimePoint at) const noexcept {
  const auto after = std::upper_bound(entries_.begin(), entries_.end(), at,
                                      [](base::TimePoint t, const Entry& e) { return t < e.begins; });
  const Entry& run = after == entries_.begin() ? *after : *(after - 1);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count() + run.offset;
  const auto day = static_cast<std::int32_t>(seconds / kDay - (seconds % kDay < 0 ? 1 : 0));
  // A run is a sequence of days with the same offset from UTC. Its last day may have 25 hours. In the 25th
  // hour, the division by 24 hours gives the day after the run, so the result is limited to the run's last
  // day.
  return after == entries_.end() ? day : std::min(day, after->first_day - 1);
}

base::TimePoint Calendar::start_of(std::int32_t day) const noexcept {
  const auto after = std::upper_bound(entries_.begin(), entries_.end(), day,
                                      [](std::int32_t d, const Entry& e) { return d < e.first_day; });
  const Entry& run = after == entries_.begin() ? *after : *(after - 1);
  return midnight(day, run.offset);
}

Interval Calendar::day(base::TimePoint at) const noexcept {
  const auto day = day_number(at);
  return {start_of(day), start_of(day + 1)};
}

// Returns the week, from Monday on, that contains `at`. Day 0 (1970-01-01) is a Thursday, so day -3 is a
// Monday.
Interval Calendar::week(base::TimePoint at) const noexcept {
  constexpr std::int32_t kDays = 7;
  const auto day = day_number(at);
  const auto since_monday = (day + 3) % kDays;
  const auto monday = day - (since_monday < 0 ? since_monday + kDays : since_monday);
  return {start_of(monday), start_of(monday + kDays)};
}

Interval Calendar::month(base::TimePoint at) const noexcept {
  using namespace std::chrono;
  const year_month_day today{sys_days{days{day_number(at)}}};
  const auto first = [](const year_month& month) {
    return static_cast<std::int32_t>(sys_days{month / 1}.time_since_epoch().count());
  };
  const auto month = today.year() / today.month();
  return {start_of(first(month)), start_of(first(month + months{1}))};
}

}  // namespace weir::limit
