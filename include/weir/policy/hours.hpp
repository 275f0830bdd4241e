// Times of the day, on days of the week, as clocks show them somewhere: "22:00-06:00" on Fridays in Zurich.
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

// From `begin`, included, to `end`, not included; where `end` is not after `begin`, to `end` of the next day.
// `days` are those on which it begins: Friday's 22:00-06:00 ends on Saturday. Clocks count as they are shown:
// an hour that daylight saving skips is not there, and one that it repeats is there twice.
struct Hours {
  std::chrono::minutes begin{0};      // since midnight, 0 to 23:59
  std::chrono::minutes end{24 * 60};  // 00:01 to 24:00; never `begin` itself
  std::uint8_t days = 0x7f;           // a bit for each, Sunday the lowest
  base::TimeZone zone;

  [[nodiscard]] bool hold(base::TimePoint instant) const noexcept;
  // The first instant from this one on at which they do not hold; nullopt: there is none within ten days, and
  // so never, but for what is put right about clocks.
  [[nodiscard]] std::optional<base::TimePoint> end_from(base::TimePoint instant) const noexcept;
  // What a clock there shows: "fri 21:59"
  [[nodiscard]] std::string clock_at(base::TimePoint instant) const;
  // "hours 22:00-06:00 on fri sat in Europe/Zurich"
  [[nodiscard]] std::string describe() const;
};

// "HH:MM-HH:MM"; the second may be 24:00. The rest of the Hours has its defaults.
[[nodiscard]] base::Result<Hours> parse_hours(std::string_view text);

// "mon" … "sun" as bits of Hours::days.
[[nodiscard]] base::Result<std::uint8_t> parse_days(std::span<const std::string> names);

}  // namespace weir::policy
