// Compares weir's calendars with the C library, which reads the same time zones with other code. Also tests
// unusual days.
#include "config/read/calendar.hpp"

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

namespace weir::config {
namespace {

using base::TimePoint;
using namespace std::chrono;

std::shared_ptr<const limit::Calendar> calendar(const std::string& zone) {
  return load_calendar(zone).value();
}

TimePoint utc(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  return sys_days(std::chrono::year(year) / month / day) + hours(hour) + minutes(minute);
}

// Sets the time zone of the C library while the object exists. No other thread may run.
class Zone {
 public:
  explicit Zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    ::unsetenv("TZ");
    ::tzset();
  }
  static std::tm local(TimePoint at) {
    const auto seconds = static_cast<std::time_t>(floor<std::chrono::seconds>(at.time_since_epoch()).count());
    std::tm result{};
    ::localtime_r(&seconds, &result);
    return result;
  }
};

TEST(Calendars, DaysWeeksAndMonthsAgreeWithTheCLibrary) {
  const auto seed = std::random_device{}();
  std::cout << "[     SEED ] " << seed << '\n';
  std::mt19937_64 random(seed);
  for (const char* name : {"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu",
                           "Australia/Lord_Howe", "Pacific/Apia", "America/Havana", "Asia/Beirut"}) {
    SCOPED_TRACE(name);
    const Zone zone(name);
    const auto days = calendar(name);
    for (int i = 0; i < 3'000; ++i) {
      // A time from 1970 to 2037. The C library and weir both know all clock changes of these years.
      const auto at = TimePoint(microseconds(random() % 2'114'000'000'000'000));
      const auto day = days->day(at);
      ASSERT_TRUE(day.start <= at && at < day.end) << "seed " << seed;
      const auto same_day = [](const std::tm& a, const std::tm& b) {
        return a.tm_yday == b.tm_yday && a.tm_year == b.tm_year;
      };
      const auto today = Zone::local(at);
      ASSERT_TRUE(same_day(Zone::local(day.end - 1us), today)) << at.time_since_epoch().count();
      ASSERT_FALSE(same_day(Zone::local(day.end), today)) << at.time_since_epoch().count();
      if (day.start > TimePoint{} + hours(48)) {
        ASSERT_TRUE(same_day(Zone::local(day.start), today));
        ASSERT_FALSE(same_day(Zone::local(day.start - 1us), today));
      }
      const auto week = days->week(at);
      ASSERT_TRUE(week.start <= day.start && day.end <= week.end);
      auto sunday = day;  // the last day before the next Monday; may be `day` itself
      while (Zone::local(sunday.end).tm_wday != 1) sunday = days->day(sunday.end);
      ASSERT_EQ(week.end, sunday.end) << at.time_since_epoch().count();
      if (week.start > TimePoint{} + hours(48)) {
        ASSERT_EQ(Zone::local(week.start).tm_wday, 1);
        ASSERT_EQ(days->day(week.start).start, week.start);
      }
      const auto month = days->month(at);
      ASSERT_TRUE(month.start <= at && at < month.end);
      ASSERT_EQ(Zone::local(month.end - 1us).tm_mon, today.tm_mon);
      ASSERT_EQ(Zone::local(month.end).tm_mon, (today.tm_mon + 1) % 12);
      ASSERT_EQ(Zone::local(month.end).tm_mday, 1);
    }
  }
}

TEST(Calendars, DayOnWhichClocksChangeHas23Or25Hours) {
  const auto berlin = calendar("Europe/Berlin");
  const auto spring = berlin->day(utc(2026, 3, 29, 12));
  EXPECT_EQ(spring, (limit::Interval{utc(2026, 3, 28, 23), utc(2026, 3, 29, 22)}));
  const auto autumn = berlin->day(utc(2026, 10, 25, 12));
  EXPECT_EQ(autumn, (limit::Interval{utc(2026, 10, 24, 22), utc(2026, 10, 25, 23)}));
  EXPECT_EQ(berlin->month(utc(2026, 3, 31, 22)).start, utc(2026, 3, 31, 22))
      << "in Berlin it is April already";
  EXPECT_EQ(berlin->day(utc(2100, 7, 1, 12)).start, utc(2100, 6, 30, 22))
      << "computed by the rule after the end of the table";
}

TEST(Calendars, WeekInWhichClocksChangeHas167Or169Hours) {
  const auto berlin = calendar("Europe/Berlin");
  // Clocks change on a Sunday, the last day of a week. That week has 167 hours in spring and 169 in autumn.
  const auto spring = berlin->week(utc(2026, 3, 25, 12));
  EXPECT_EQ(spring, (limit::Interval{utc(2026, 3, 22, 23), utc(2026, 3, 29, 22)}));
  EXPECT_EQ(spring.end - spring.start, 167h);
  const auto autumn = berlin->week(utc(2026, 10, 25, 23) - 1us);
  EXPECT_EQ(autumn, (limit::Interval{utc(2026, 10, 18, 22), utc(2026, 10, 25, 23)}));
  EXPECT_EQ(autumn.end - autumn.start, 169h);
  EXPECT_EQ(berlin->week(autumn.end), (limit::Interval{autumn.end, autumn.end + 168h}));
}

TEST(Calendars, DayBeginsAtOneOClockIfAClockChangeSkipsMidnight) {
  // Clocks went from 00:00 to 01:00.
  const auto day = calendar("America/Sao_Paulo")->day(utc(2018, 11, 4, 12));
  EXPECT_EQ(day, (limit::Interval{utc(2018, 11, 4, 3), utc(2018, 11, 5, 2)}));
}

TEST(Calendars, DayBeginsAtTheFirstMidnightIfAClockChangeRepeatsMidnight) {
  // On 3 November 2024 clocks in Havana went from 01:00 back to 00:00. So this day has two midnights and 25
  // hours.
  const auto day = calendar("America/Havana")->day(utc(2024, 11, 3, 12));
  EXPECT_EQ(day, (limit::Interval{utc(2024, 11, 3, 4), utc(2024, 11, 4, 5)}));
}

TEST(Calendars, DayThatTheTimeZoneSkippedIsNeverReturned) {
  // Samoa had no 30 December 2011, because it moved across the date line.
  const auto samoa = calendar("Pacific/Apia");
  const auto jump = utc(2011, 12, 30, 10);
  EXPECT_EQ(samoa->day(jump - 1us), (limit::Interval{jump - 24h, jump}));
  EXPECT_EQ(samoa->day(jump), (limit::Interval{jump, jump + 24h}));
}

TEST(Calendars, RejectAnUnknownZone) {
  for (const char* name : {"", "Europe/Nowhere", "Europe", "EEST5"})
    EXPECT_FALSE(load_calendar(name)) << name;
}

}  // namespace
}  // namespace weir::config
