#include "weir/observe/surge.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using Change = Surge::Change;

constexpr base::TimePoint at(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(1'000'000 + seconds)};
}
constexpr limit::Rate per_minute(std::uint64_t count) {
  return {.count = count, .period = std::chrono::minutes(1)};
}

// Calls note() once a second, with a total that grows by `step` each time. Stops when the surge begins or
// ends.
struct Watch {
  Surge surge;
  std::int64_t now = 0;
  std::uint64_t total = 0;

  explicit Watch(const Surge::Settings& settings) : surge(settings) {}

  Change run(std::int64_t seconds, std::uint64_t step) {
    for (std::int64_t i = 0; i < seconds; ++i) {
      total += step;
      const auto change = surge.note(total, at(++now));
      if (change != Change::None) return change;
    }
    return Change::None;
  }
};

TEST(SurgeTest, EventsBeforeTheFirstMeasurementCauseNoAlert) {
  Watch watch({.above = per_minute(100)});
  watch.total = 5'000;
  EXPECT_EQ(watch.run(300, 0), Change::None);
  EXPECT_EQ(watch.surge.seen(), 0U);
}

TEST(SurgeTest, RateEqualToTheLimitCausesNoAlert) {
  Watch watch({.above = per_minute(60)});
  EXPECT_EQ(watch.run(600, 1), Change::None);
  EXPECT_EQ(watch.surge.seen(), 60U);
}

TEST(SurgeTest, OneEventMoreThanTheLimitCausesAnAlertAtOnce) {
  Watch watch({.above = per_minute(100)});
  EXPECT_EQ(watch.run(20, 0), Change::None);
  watch.total += 101;
  EXPECT_EQ(watch.run(1, 0), Change::Began);
  EXPECT_TRUE(watch.surge.firing());
  EXPECT_EQ(watch.surge.since(), at(21));
  EXPECT_EQ(watch.surge.seen(), 101U);
}

TEST(SurgeTest, AlertEndsOneMinuteAfterEventsFallBelowTheLimit) {
  Watch watch({.above = per_minute(100)});
  EXPECT_EQ(watch.run(1, 0), Change::None);
  EXPECT_EQ(watch.run(1, 101), Change::Began);
  EXPECT_EQ(watch.run(1000, 0), Change::Ended);
  // The alert began at 2 s. The events count for a minute, and the alert ends after another minute of calm.
  EXPECT_EQ(watch.now, 2 + 60 + 60);
  EXPECT_FALSE(watch.surge.firing());
}

TEST(SurgeTest, AnotherBurstBeforeTheEndKeepsTheAlertFiring) {
  Watch watch({.above = per_minute(100)});
  EXPECT_EQ(watch.run(1, 0), Change::None);
  EXPECT_EQ(watch.run(1, 101), Change::Began);
  EXPECT_EQ(watch.run(80, 0), Change::None);
  EXPECT_EQ(watch.run(1, 101), Change::None);
  EXPECT_EQ(watch.run(80, 0), Change::None);
  EXPECT_TRUE(watch.surge.firing());
}

TEST(SurgeTest, BurstShorterThanTheConfiguredTimeCausesNoAlert) {
  Watch watch(
      {.above = {.count = 5, .period = std::chrono::seconds(10)}, .lasting = std::chrono::seconds(30)});
  EXPECT_EQ(watch.run(1, 0), Change::None);
  EXPECT_EQ(watch.run(1, 6), Change::None);
  EXPECT_EQ(watch.run(200, 0), Change::None);
  EXPECT_EQ(watch.run(29, 6), Change::None);
  EXPECT_EQ(watch.run(5, 6), Change::Began);
  EXPECT_EQ(watch.now, 1 + 1 + 200 + 1 + 30);
}

TEST(SurgeTest, AlertThatLastsIsReportedAgainAtEachRepeatInterval) {
  Watch watch({.above = per_minute(10), .repeat = std::chrono::minutes(5)});
  EXPECT_EQ(watch.run(60, 1), Change::Began);
  const auto began = watch.now;
  EXPECT_EQ(watch.run(1000, 1), Change::Continues);
  EXPECT_EQ(watch.now, began + 300);
  EXPECT_EQ(watch.run(1000, 1), Change::Continues);
  EXPECT_EQ(watch.now, began + 600);
  EXPECT_EQ(watch.surge.since(), at(began));
}

TEST(SurgeTest, TotalThatDecreasesCountsAsRestartedFromZero) {
  Watch watch({.above = per_minute(10)});
  watch.total = 1'000'000;
  EXPECT_EQ(watch.run(2, 0), Change::None);
  watch.total = 0;
  EXPECT_EQ(watch.run(1, 5), Change::None);
  EXPECT_EQ(watch.surge.seen(), 5U);
  EXPECT_EQ(watch.run(2, 6), Change::Began);
}

TEST(SurgeTest, AlertOverALongPeriodEndsLateByAtMostASixtiethOfThePeriod) {
  Watch watch({.above = {.count = 1000, .period = std::chrono::hours(24)}});
  EXPECT_EQ(watch.run(1, 0), Change::None);
  EXPECT_EQ(watch.run(1, 1001), Change::Began);
  EXPECT_EQ(watch.run(48 * 3600, 0), Change::Ended);
  EXPECT_GE(watch.now, 24 * 3600);
  EXPECT_LE(watch.now, 24 * 3600 + 24 * 60 + 2 + 60);
}

}  // namespace
}  // namespace weir::observe
