#include "weir/base/time_zone.hpp"

#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;

TimeZone zone(const std::string& name) {
  auto loaded = TimeZone::load(name);
  EXPECT_TRUE(loaded) << name;
  return *loaded;
}

TimePoint utc(int y, unsigned month, unsigned day, std::chrono::seconds time = 0s) {
  return sys_days(year(y) / static_cast<int>(month) / static_cast<int>(day)) + time;
}

struct Shown {
  const char* zone;
  TimePoint instant;
  std::chrono::year_month_day date;
  std::chrono::seconds time;
};

TEST(TimeZone, ReturnsLocalDateAndTime) {
  const Shown cases[] = {
      {"UTC", utc(2026, 3, 1, 12h), year(2026) / 3 / 1, 12h},
      {"Europe/Zurich", utc(2026, 1, 1, 23h), year(2026) / 1 / 2, 0h},
      {"Europe/Zurich", utc(2026, 3, 29, 59min + 59s), year(2026) / 3 / 29, 1h + 59min + 59s},
      {"Europe/Zurich", utc(2026, 3, 29, 1h), year(2026) / 3 / 29, 3h},  // just after clocks go forward
      {"Europe/Zurich", utc(2026, 10, 25, 30min), year(2026) / 10 / 25, 2h + 30min},
      // clocks show the hour from two to three twice
      {"Europe/Zurich", utc(2026, 10, 25, 1h + 30min), year(2026) / 10 / 25, 2h + 30min},
      {"America/New_York", utc(2050, 7, 1, 4h), year(2050) / 7 / 1,
       0h},  // an instant after the last change in the zone file
      {"Asia/Kathmandu", utc(2026, 1, 1), year(2026) / 1 / 1, 5h + 45min},
      {"Pacific/Kiritimati", utc(2026, 1, 1, 10h), year(2026) / 1 / 2, 0h},
  };
  for (const auto& c : cases) {
    const auto local = zone(c.zone).local(c.instant + 999'999us);
    EXPECT_EQ(local.date, c.date) << c.zone;
    EXPECT_EQ(local.since_midnight, c.time) << c.zone;
    EXPECT_EQ(local.day, std::chrono::weekday(sys_days(c.date)));
  }
}

TEST(TimeZone, FindsTheNextClockChange) {
  const auto zurich = zone("Europe/Zurich");
  EXPECT_EQ(zurich.change_after(utc(2026, 1, 1)), utc(2026, 3, 29, 1h));
  EXPECT_EQ(zurich.change_after(utc(2026, 3, 29, 59min + 59s)), utc(2026, 3, 29, 1h));
  EXPECT_EQ(zurich.change_after(utc(2026, 3, 29, 1h)), utc(2026, 10, 25, 1h));
  EXPECT_EQ(zone("America/New_York").change_after(utc(2050, 1, 1)), utc(2050, 3, 13, 7h));
  EXPECT_EQ(zone("Australia/Lord_Howe").change_after(utc(2026, 1, 1)),
            utc(2026, 4, 4, 15h));  // clocks change by only half an hour
  EXPECT_EQ(TimeZone().change_after(utc(2026, 1, 1)), std::nullopt);
  EXPECT_EQ(zone("Asia/Tokyo").change_after(utc(2026, 1, 1)), std::nullopt);
}

TEST(TimeZone, DayWithAClockChangeHas23Or25Hours) {
  const auto hours = [](const char* name, std::chrono::year_month_day date) {
    const auto here = zone(name);
    const auto length = here.start_of(sys_days(date) + std::chrono::days(1)) - here.start_of(date);
    return std::chrono::duration_cast<std::chrono::hours>(length).count();
  };
  EXPECT_EQ(hours("Europe/Zurich", year(2026) / 3 / 29), 23);
  EXPECT_EQ(hours("Europe/Zurich", year(2026) / 10 / 25), 25);
  EXPECT_EQ(hours("Europe/Zurich", year(2026) / 6 / 1), 24);
  EXPECT_EQ(hours("UTC", year(2026) / 3 / 29), 24);
}

TEST(TimeZone, DayWhoseMidnightIsSkippedBeginsAtTheSkip) {
  // In Sao Paulo the hour after midnight was skipped.
  EXPECT_EQ(zone("America/Sao_Paulo").start_of(year(2017) / 10 / 15), utc(2017, 10, 15, 3h));
  // Samoa skipped 30 December 2011.
  EXPECT_EQ(zone("Pacific/Apia").start_of(year(2011) / 12 / 29), utc(2011, 12, 29, 10h));
  EXPECT_EQ(zone("Pacific/Apia").start_of(year(2011) / 12 / 30), utc(2011, 12, 30, 10h));
  EXPECT_EQ(zone("Pacific/Apia").start_of(year(2011) / 12 / 31), utc(2011, 12, 30, 10h));
}

// Until 2011 St. John's (Newfoundland) set its clocks back by an hour at 00:01. The clocks then showed 23:01
// of the previous date again.
TEST(TimeZone, DayThatClocksShowTwiceBeginsAtItsFirstMidnight) {
  EXPECT_EQ(zone("America/St_Johns").start_of(year(2010) / 11 / 7), utc(2010, 11, 7, 2h + 30min));
}

TEST(TimeZone, DayBeginsWhenClocksFirstShowItsDate) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const char* name : {"UTC", "Europe/Zurich", "America/Havana", "America/Sao_Paulo", "Asia/Beirut",
                           "Australia/Lord_Howe"}) {
    const auto here = zone(name);
    for (int i = 0; i < 3000; ++i) {
      const sys_days date(std::chrono::days(random() % 46'000));
      const auto begin = here.start_of(date);
      ASSERT_EQ(sys_days(here.local(begin).date), date) << name;
      ASSERT_EQ(sys_days(here.local(begin - 1us).date), date - std::chrono::days(1)) << name;
    }
  }
}

TEST(TimeZone, RejectsUnknownZones) {
  for (const char* name : {"", "Europe/Zürich", "Mars/Olympus", "/etc/localtime", "file:/etc/localtime",
                           "libc:localtime", "localtime", "../localtime", "Europe"}) {
    const auto loaded = TimeZone::load(name);
    ASSERT_FALSE(loaded) << name;
    EXPECT_NE(loaded.error().message.find("is not a time zone"), std::string::npos);
  }
}

TEST(TimeZone, EqualsOnlyAZoneOfTheSameName) {
  EXPECT_EQ(TimeZone().name(), "UTC");
  EXPECT_EQ(zone("Europe/Zurich").name(), "Europe/Zurich");
  EXPECT_EQ(zone("Europe/Zurich"), zone("Europe/Zurich"));
  EXPECT_NE(zone("Europe/Zurich"), TimeZone());
}

TEST(TimeZone, IsSafeToUseFromManyThreads) {
  const auto here = zone("Europe/Zurich");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&here, t] {
      for (int i = 0; i < 5000; ++i) {
        const auto instant = utc(2000 + (i + t) % 60, 7, 1, 12h);
        EXPECT_EQ(here.local(instant).since_midnight, 14h);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace weir::base
