#include "weir/policy/hours.hpp"

#include <random>
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

// Returns an instant of 2026. The 2nd of January was a Friday.
base::TimePoint at(int month, int day, std::chrono::microseconds time) {
  return std::chrono::sys_days(std::chrono::year(2026) / month / day) + time;
}

TEST(Hours, IncludeTheirFirstMinuteButNotTheirEnd) {
  const auto night = hours_of("01:00-06:00");
  EXPECT_FALSE(night.hold(at(1, 2, 1h - 1us)));
  EXPECT_TRUE(night.hold(at(1, 2, 1h)));
  EXPECT_TRUE(night.hold(at(1, 2, 6h - 1us)));
  EXPECT_FALSE(night.hold(at(1, 2, 6h)));
}

TEST(Hours, HoursPastMidnightBelongToTheDayOnWhichTheyBegin) {
  const auto night = hours_of("22:00-06:00", {"fri"});
  EXPECT_FALSE(night.hold(at(1, 2, 1h)));  // 01:00 on Friday belongs to the hours that began on Thursday
  EXPECT_TRUE(night.hold(at(1, 2, 22h)));
  EXPECT_TRUE(night.hold(at(1, 3, 0h)));
  EXPECT_TRUE(night.hold(at(1, 3, 6h - 1us)));
  EXPECT_FALSE(night.hold(at(1, 3, 6h)));
  EXPECT_FALSE(night.hold(at(1, 3, 22h)));
}

TEST(Hours, CanCoverWholeDaysAndEndAtMidnight) {
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

TEST(Hours, AreReadByTheClockOfTheConfiguredTimeZone) {
  const auto evening = hours_of("18:00-19:00", {}, "Europe/Zurich");
  EXPECT_TRUE(evening.hold(at(1, 2, 17h)));  // in winter, Zurich is one hour ahead of UTC
  EXPECT_TRUE(evening.hold(at(7, 2, 16h)));  // in summer, Zurich is two hours ahead of UTC
  EXPECT_FALSE(evening.hold(at(7, 2, 17h)));
  const auto small = hours_of("02:00-03:00", {"sun"}, "Europe/Zurich");
  // On 29 March, the clock jumps from 02:00 to 03:00, so these hours do not exist on that day.
  EXPECT_FALSE(small.hold(at(3, 29, 1h)));
  EXPECT_TRUE(small.hold(at(10, 25, 30min)));
  EXPECT_TRUE(small.hold(at(10, 25, 1h + 30min)));  // the clock shows 02:30 for the second time
  EXPECT_FALSE(small.hold(at(10, 25, 2h)));
  const auto day = hours_of("00:00-24:00", {"sat"}, "Pacific/Kiritimati");
  EXPECT_TRUE(day.hold(at(1, 2, 10h)));  // already Saturday in that zone
}

// Property: each minute of the week is either in the hours "a-b" or in "b-a", never in both.
TEST(Hours, EachMinuteIsEitherInTheHoursOrInTheOppositeHours) {
  const std::pair<const char*, const char*> pairs[] = {
      {"01:00-06:00", "06:00-01:00"}, {"00:00-12:00", "12:00-00:00"}, {"23:59-00:01", "00:01-23:59"}};
  for (const auto& [a, b] : pairs)
    for (auto minute = 0min; minute < 7 * 24h; ++minute)
      ASSERT_NE(hours_of(a).hold(at(1, 2, minute)), hours_of(b).hold(at(1, 2, minute))) << a;
}

TEST(Hours, EndWhenTheLocalClockShowsTheirEnd) {
  EXPECT_EQ(hours_of("01:00-06:00").end_from(at(1, 2, 2h + 1us)), at(1, 2, 6h));
  EXPECT_EQ(hours_of("01:00-06:00").end_from(at(1, 2, 6h)), at(1, 2, 6h)) << "the time is outside the hours";
  const auto night = hours_of("22:00-06:00", {"fri"});
  EXPECT_EQ(night.end_from(at(1, 2, 23h)), at(1, 3, 6h));
  EXPECT_EQ(night.end_from(at(1, 3, 5h)), at(1, 3, 6h));
  EXPECT_EQ(hours_of("00:00-24:00", {"sat", "sun"}).end_from(at(1, 3, 12h)), at(1, 5, 0h));
  EXPECT_EQ(hours_of("00:00-24:00", {"fri"}, "Europe/Zurich").end_from(at(1, 2, 12h)), at(1, 2, 23h));
  EXPECT_EQ(hours_of("00:00-24:00").end_from(at(1, 2, 12h)), std::nullopt);
  EXPECT_EQ(hours_of("00:00-24:00", {}, "Europe/Zurich").end_from(at(3, 29, 0h)), std::nullopt);
}

TEST(Hours, EndAtAClockChangeThatSkipsTheirEnd) {
  const auto end = [](const char* text, base::TimePoint from) {
    return hours_of(text, {}, "Europe/Zurich").end_from(from);
  };
  EXPECT_EQ(end("00:00-04:00", at(3, 29, 30min)), at(3, 29, 2h));  // the clock change shortens these hours
  EXPECT_EQ(end("00:00-02:30", at(3, 29, 30min)), at(3, 29, 1h));  // the clock skips 02:30
  EXPECT_EQ(end("00:00-04:00", at(10, 25, 0h)), at(10, 25, 3h));
  EXPECT_EQ(end("00:00-02:30", at(10, 25, 0h)), at(10, 25, 30min));
  EXPECT_EQ(end("00:00-02:30", at(10, 25, 1h)), at(10, 25, 1h + 30min));  // ends at the second 02:30
  // At 01:00 UTC, the clock goes back from 03:00 to 02:00. That is before the start of these hours.
  EXPECT_EQ(end("02:30-05:00", at(10, 25, 45min)), at(10, 25, 1h));
}

// Compares the end with a search that checks every minute.
TEST(Hours, EndIsTheFirstMinuteOutsideTheHours) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto any = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  const char* zones[] = {"UTC", "Europe/Zurich", "Australia/Lord_Howe", "America/Santiago"};
  const base::TimePoint near[] = {at(1, 2, 0h), at(3, 27, 0h), at(10, 23, 0h), at(4, 3, 0h), at(10, 2, 0h)};
  for (int round = 0; round < 2'000; ++round) {
    Hours hours;
    hours.zone = base::TimeZone::load(zones[any(3)]).value();
    hours.begin = std::chrono::minutes(15 * any(95));
    hours.end = std::chrono::minutes(15 * (1 + any(95)));
    if (hours.begin == hours.end) continue;
    hours.days = static_cast<std::uint8_t>(1 + any(126));
    const auto from = near[any(4)] + std::chrono::minutes(any(3 * 24 * 60));
    auto looked = from;
    while (hours.hold(looked) && looked < from + std::chrono::days(11)) looked += 1min;
    const auto end = hours.end_from(from);
    if (looked < from + std::chrono::days(11))
      ASSERT_EQ(end, looked) << hours.describe() << " from " << hours.clock_at(from);
    else
      ASSERT_EQ(end, std::nullopt) << hours.describe();
  }
}

TEST(Hours, InvalidTextIsRejected) {
  for (const char* text :
       {"", "1:00-6:00", "01:00", "01:00-", "-06:00", "01:00-25:00", "01:60-02:00", "24:00-01:00",
        "01:00-01:00", "01:00–06:00", "01:00-06:00 ", "24:01-02:00", "00:00-24:01", "a1:00-06:00"}) {
    const auto hours = parse_hours(text);
    ASSERT_FALSE(hours) << text;
    EXPECT_NE(hours.error().message.find(text), std::string::npos);
  }
  EXPECT_FALSE(parse_days(std::vector<std::string>{"mon", "Tue"}));
}

TEST(Hours, DescriptionShowsTimesDaysAndTimeZone) {
  EXPECT_EQ(hours_of("22:00-06:05").describe(), "hours 22:00-06:05 in UTC");
  EXPECT_EQ(hours_of("18:00-00:00", {"sun", "mon"}, "Europe/Zurich").describe(),
            "hours 18:00-24:00 on mon sun in Europe/Zurich");
}

}  // namespace
}  // namespace weir::policy
