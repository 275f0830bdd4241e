// Hours of the day on certain days of the week, by the local clock of a time zone. Example: "22:00-06:00" on
// Fridays in Zurich.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/base/time_zone.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::policy {

// The hours from `begin` (included) to `end` (excluded). If `end` is not after `begin`, `end` is on the next
// day. `days` are the days on which the hours begin: Friday's 22:00-06:00 ends on Saturday. The hours follow
// the local clock. When clocks go forward, the skipped hour is missing. When clocks go back, the repeated
// hour is included twice.
struct Hours {
  std::chrono::minutes begin{0};      // since midnight, 0 to 23:59
  std::chrono::minutes end{24 * 60};  // 00:01 to 24:00; never equal to `begin`
  std::uint8_t days = 0x7f;           // one bit for each day; Sunday has the lowest bit
  base::TimeZone zone;

  [[nodiscard]] bool hold(base::TimePoint instant) const noexcept;
  // Returns the first instant at or after `instant` that is outside these hours. Returns nullopt if the hours
  // do not end within ten days.
  [[nodiscard]] std::optional<base::TimePoint> end_from(base::TimePoint instant) const noexcept;
  // Returns the local day and time: "fri 21:59".
  [[nodiscard]] std::string clock_at(base::TimePoint instant) const;
  // Returns "hours 22:00-06:00 on fri sat in Europe/Zurich".
  [[nodiscard]] std::string describe() const;
};

// Parses "HH:MM-HH:MM" into `begin` and `end`; the second time may be 24:00. The other members of the result
// have their default values.
[[nodiscard]] base::Result<Hours> parse_hours(std::string_view text);

// Parses "mon" … "sun" into the bits of Hours::days.
[[nodiscard]] base::Result<std::uint8_t> parse_days(std::span<const std::string> names);

}  // namespace weir::policy
