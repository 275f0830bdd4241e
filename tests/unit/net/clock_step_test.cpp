// When two clocks count as apart, and by how much.
#include "weir/net/clock_step.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using Change = ClockStep::Change;

TEST(ClockStep, SaysOnceThatTheClocksDifferAndOnceThatTheyAgree) {
  ClockStep step;
  EXPECT_EQ(step.look(0s), Change::None);
  EXPECT_EQ(step.look(2s), Change::None);
  EXPECT_EQ(step.look(2s + 1us), Change::Apart);
  EXPECT_EQ(step.look(2s + 1us), Change::None);
  EXPECT_EQ(step.look(-50min), Change::None) << "they differ still";
  EXPECT_EQ(step.look(2s), Change::Agree);
  EXPECT_EQ(step.look(2s), Change::None);
  EXPECT_EQ(step.look(-8h), Change::Apart);
}

TEST(ClockStep, DoesNotFlickerAtTheTolerance) {
  ClockStep step;
  ASSERT_EQ(step.look(3s), Change::Apart);
  EXPECT_EQ(step.look(1500ms), Change::None);
  EXPECT_EQ(step.look(2500ms), Change::None);
  EXPECT_EQ(step.look(1s), Change::Agree);
}

TEST(ClockStep, IsAWholeNumberOfSecondsThatStays) {
  ClockStep step;
  EXPECT_EQ(step.seconds(), 0s);
  (void)step.look(-3'000'300'000us);
  EXPECT_EQ(step.seconds(), -3'000s);
  for (const auto ahead : {-3'000'300'100us, -2'999'900'000us, -3'001'900'000us}) {
    EXPECT_EQ(step.look(ahead), Change::None);
    EXPECT_EQ(step.seconds(), -3'000s);
  }
  (void)step.look(-3'002'600'000us);
  EXPECT_EQ(step.seconds(), -3'003s);
}

}  // namespace
}  // namespace weir::net
