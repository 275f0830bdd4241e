#include "app/time_zone.hpp"

#include "app/mistakes.hpp"

#include <absl/time/time.h>

namespace weir::app {

namespace {

constexpr std::int32_t kFirstDay = -2;     // before the epoch in every zone
constexpr std::int32_t kLastDay = 65'744;  // 2150-01-01
constexpr std::int64_t kDay = 86'400;      // s

// The first instant of a local day: where midnight is skipped, when the clock skips it; where it comes twice,
// the first. How long before midnight UTC that is.
std::chrono::seconds offset_of(const absl::TimeZone& zone, std::int32_t day) {
  const auto found = zone.At(absl::CivilSecond(absl::CivilDay() + day));
  const bool skipped = found.kind == absl::TimeZone::TimeInfo::SKIPPED;
  return std::chrono::seconds(day * kDay - absl::ToUnixSeconds(skipped ? found.trans : found.pre));
}

}  // namespace

base::Result<std::shared_ptr<const limit::Calendar>> load_calendar(const std::string& name) {
  absl::TimeZone zone;
  if (name.empty() || !absl::LoadTimeZone(name, &zone))
    return base::Error{"found " + in_quotes(name) +
                       "; expected a time zone that this system knows, as \"Europe/Berlin\""};
  std::vector<limit::Calendar::Run> runs;
  for (std::int32_t day = kFirstDay; day <= kLastDay; ++day) {
    const auto offset = offset_of(zone, day);
    if (runs.empty() || runs.back().offset != offset) runs.push_back({day, offset});
  }
  return std::make_shared<const limit::Calendar>(name, std::move(runs));
}

}  // namespace weir::app
