#include "weir/observe/streak.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

constexpr base::TimePoint second(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(seconds)};
}

TEST(StreakTest, StreakHasNoStartBeforeTheFirstEvent) {
  Streak streak(std::chrono::seconds(60));
  streak.note(500, second(10));
  streak.note(500, second(15));
  EXPECT_FALSE(streak.since());
  EXPECT_FALSE(streak.last());
}

TEST(StreakTest, StreakBeginsWithTheFirstEventAndContinuesOverShortPauses) {
  Streak streak(std::chrono::seconds(60));
  streak.note(0, second(10));
  streak.note(3, second(15));
  EXPECT_EQ(streak.since(), second(15));
  streak.note(3, second(75));
  EXPECT_EQ(streak.since(), second(15));
  streak.note(4, second(76));
  EXPECT_EQ(streak.since(), second(15));
  EXPECT_EQ(streak.last(), second(76));
}

TEST(StreakTest, LongPauseEndsAStreakAndTheNextEventBeginsANewStreak) {
  Streak streak(std::chrono::seconds(60));
  streak.note(0, second(10));
  streak.note(1, second(15));
  streak.note(1, second(76));
  EXPECT_FALSE(streak.since());
  EXPECT_EQ(streak.last(), second(15));
  streak.note(2, second(80));
  EXPECT_EQ(streak.since(), second(80));
}

TEST(StreakTest, TotalThatDecreasesCountsAsRestartedFromZero) {
  Streak streak(std::chrono::seconds(60));
  streak.note(100, second(10));
  streak.note(2, second(15));
  EXPECT_EQ(streak.since(), second(15));
}

}  // namespace
}  // namespace weir::observe
