#include "weir/observe/streak.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

constexpr base::TimePoint at(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(seconds)};
}

TEST(StreakTest, HasNoStartBeforeTheFirstEvent) {
  Streak streak(std::chrono::seconds(60));
  streak.note(500, at(10));
  streak.note(500, at(15));
  EXPECT_FALSE(streak.since());
  EXPECT_FALSE(streak.last());
}

TEST(StreakTest, BeginsWithTheFirstEventAndContinuesOverShortPauses) {
  Streak streak(std::chrono::seconds(60));
  streak.note(0, at(10));
  streak.note(3, at(15));
  EXPECT_EQ(streak.since(), at(15));
  streak.note(3, at(75));
  EXPECT_EQ(streak.since(), at(15));
  streak.note(4, at(76));
  EXPECT_EQ(streak.since(), at(15));
  EXPECT_EQ(streak.last(), at(76));
}

TEST(StreakTest, LongPauseEndsAStreakAndTheNextEventBeginsANewStreak) {
  Streak streak(std::chrono::seconds(60));
  streak.note(0, at(10));
  streak.note(1, at(15));
  streak.note(1, at(76));
  EXPECT_FALSE(streak.since());
  EXPECT_EQ(streak.last(), at(15));
  streak.note(2, at(80));
  EXPECT_EQ(streak.since(), at(80));
}

TEST(StreakTest, DecreasedTotalConsistsOfNewEvents) {
  Streak streak(std::chrono::seconds(60));
  streak.note(100, at(10));
  streak.note(2, at(15));
  EXPECT_EQ(streak.since(), at(15));
}

}  // namespace
}  // namespace weir::observe
