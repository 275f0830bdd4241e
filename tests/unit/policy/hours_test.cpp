#include "weir/policy/hours.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using namespace std::chrono_literals;

Hours hours_of(std::string_view text, std::vector<std::string> days = {}, const char* zone = "UTC") {
  auto hours = parse_hours(text).value();
  if (!days.empty()) hours.days = parse_days(days).value();
  hours.zone = base::TimeZone::load(zone).value();
  return hours;
}

// An instant of 2026; 2 January was a Friday.
base::TimePoint at(int month, int day, std::chrono::microseconds time) {
  return std::chrono::sys_days(std::chrono::year(2026) / month / day) + time;
}

TEST(Hours, IncludeTheirStartAndNotTheirEnd) {
  const auto night = hours_of("01:00-06:00");
  EXPECT_FALSE(night.hold(at(1, 2, 1h - 1us)));
  EXPECT_TRUE(night.hold(at(1, 2, 1h)));
  EXPECT_TRUE(night.hold(at(1, 2, 6h - 1us)));
  EXPECT_FALSE(night.hold(at(1, 2, 6h)));
}

TEST(Hours, MaySpanMidnightAndBelongToTheDayTheyBegin) {
  const auto night = hours_of("22:00-06:00", {"fri"});
  EXPECT_FALSE(night.hold(at(1, 2, 1h)));  // Thursday's
  EXPECT_TRUE(night.hold(at(1, 2, 22h)));
  EXPECT_TRUE(night.hold(at(1, 3, 0h)));
  EXPECT_TRUE(night.hold(at(1, 3, 6h - 1us)));
  EXPECT_FALSE(night.hold(at(1, 3, 6h)));
  EXPECT_FALSE(night.hold(at(1, 3, 22h)));
}

TEST(Hours, WholeDaysAndEndsAtMidnight) {
  const auto weekend = hours_of("00:00-24:00", {"sat", "sun"});
  EXPECT_FALSE(weekend.hold(at(1, 3, -1us)));
  EXPECT_TRUE(weekend.hold(at(1, 3, 0h)));
  EXPECT_TRUE(weekend.hold(at(1, 5, -1us)));
  EXPECT_FALSE(weekend.hold(at(1, 5, 0h)));
  for (const auto* text : {"18:00-24:00", "18:00-00:00"}) {
    const auto evening = hours_of(text, {"fri"});
    EXPECT_TRUE(evening.hold(at(1, 3, -1us)));
    EXPECT_FALSE(evening.hold(at(1, 3, 0h)));
  }
}

TEST(Hours, CountAsClocksAreShown) {
  const auto evening = hours_of("18:00-19:00", {}, "Europe/Zurich");
  EXPECT_TRUE(evening.hold(at(1, 2, 17h)));  // winter
  EXPECT_TRUE(evening.hold(at(7, 2, 16h)));  // summer
  EXPECT_FALSE(evening.hold(at(7, 2, 17h)));
  const auto small = hours_of("02:00-03:00", {"sun"}, "Europe/Zurich");
  EXPECT_FALSE(small.hold(at(3, 29, 1h)));  // skipped: from 02:00 straight to 03:00
  EXPECT_TRUE(small.hold(at(10, 25, 30min)));
  EXPECT_TRUE(small.hold(at(10, 25, 1h + 30min)));  // shown twice
  EXPECT_FALSE(small.hold(at(10, 25, 2h)));
  const auto day = hours_of("00:00-24:00", {"sat"}, "Pacific/Kiritimati");
  EXPECT_TRUE(day.hold(at(1, 2, 10h)));  // it is Saturday there
}

// Of any minute of the week, exactly one of "a-b" and "b-a" holds: together they are the whole time.
TEST(Hours, AndTheirComplementTileTheWeek) {
  const std::pair<const char*, const char*> pairs[] = {
      {"01:00-06:00", "06:00-01:00"}, {"00:00-12:00", "12:00-00:00"}, {"23:59-00:01", "00:01-23:59"}};
  for (const auto& [a, b] : pairs)
    for (auto minute = 0min; minute < 7 * 24h; ++minute)
      ASSERT_NE(hours_of(a).hold(at(1, 2, minute)), hours_of(b).hold(at(1, 2, minute))) << a;
}

TEST(Hours, RefusesWhatAreNone) {
  for (const char* text :
       {"", "1:00-6:00", "01:00", "01:00-", "-06:00", "01:00-25:00", "01:60-02:00", "24:00-01:00",
        "01:00-01:00", "01:00–06:00", "01:00-06:00 ", "24:01-02:00", "00:00-24:01", "a1:00-06:00"}) {
    const auto hours = parse_hours(text);
    ASSERT_FALSE(hours) << text;
    EXPECT_NE(hours.error().message.find(text), std::string::npos);
  }
  EXPECT_FALSE(parse_days(std::vector<std::string>{"mon", "Tue"}));
}

TEST(Hours, DescribeThemselves) {
  EXPECT_EQ(hours_of("22:00-06:05").describe(), "hours 22:00-06:05 in UTC");
  EXPECT_EQ(hours_of("18:00-00:00", {"sun", "mon"}, "Europe/Zurich").describe(),
            "hours 18:00-24:00 on mon sun in Europe/Zurich");
}

}  // namespace
}  // namespace weir::policy
