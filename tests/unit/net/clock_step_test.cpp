// Tests when weir reports that its clock and the machine's clock disagree, and by how much.
#include "weir/net/clock_step.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using Change = ClockStep::Change;

TEST(ClockStep, ReportsOnceThatTheClocksDifferAndOnceThatTheyAgree) {
  ClockStep step;
  EXPECT_EQ(step.update(0s), Change::None);
  EXPECT_EQ(step.update(2s), Change::None);
  EXPECT_EQ(step.update(-3000s), Change::Apart);
  EXPECT_EQ(step.update(-3000s), Change::None);
  EXPECT_EQ(step.update(-4000s), Change::None) << "the clocks still differ";
  EXPECT_EQ(step.update(2s), Change::Agree);
  EXPECT_EQ(step.update(2s), Change::None);
  EXPECT_EQ(step.update(-8h), Change::Apart);
}

TEST(ClockStep, ReportsAgainIfTheDifferenceChangesSignDoublesOrHalves) {
  ClockStep step;
  EXPECT_EQ(step.update(2s + 1us), Change::Apart);
  EXPECT_EQ(step.update(-2h), Change::Apart) << "the sign has changed";
  EXPECT_EQ(step.update(8h), Change::Apart) << "the sign has changed again";
  EXPECT_EQ(step.update(15h), Change::None);
  EXPECT_EQ(step.update(16h), Change::Apart) << "the difference has doubled";
  EXPECT_EQ(step.update(9h), Change::None);
  EXPECT_EQ(step.update(8h), Change::Apart) << "the difference has halved";
  EXPECT_EQ(step.update(0s), Change::Agree);
}

TEST(ClockStep, ReportsASteadilyGrowingDifferenceOnlyAFewTimes) {
  ClockStep step;
  int said = 0;
  for (auto ahead = base::Duration{0}; ahead < 24h; ahead += 500ms)
    said += step.update(ahead) != Change::None;
  EXPECT_EQ(said, 16) << "reported at 2 s, and at each doubling up to 18 h";
}

TEST(ClockStep, DoesNotReportRepeatedlyIfTheDifferenceIsNearTheTolerance) {
  ClockStep step;
  ASSERT_EQ(step.update(3s), Change::Apart);
  EXPECT_EQ(step.update(1500ms), Change::None);
  EXPECT_EQ(step.update(2500ms), Change::None);
  EXPECT_EQ(step.update(1s), Change::Agree);
}

TEST(ClockStep, ReportedDifferenceIsAWholeNumberThatSmallChangesDoNotChange) {
  ClockStep step;
  EXPECT_EQ(step.seconds(), 0s);
  (void)step.update(-3'000'300'000us);
  EXPECT_EQ(step.seconds(), -3'000s);
  for (const auto ahead : {-3'000'300'100us, -2'999'900'000us, -3'001'900'000us}) {
    EXPECT_EQ(step.update(ahead), Change::None);
    EXPECT_EQ(step.seconds(), -3'000s);
  }
  (void)step.update(-3'002'600'000us);
  EXPECT_EQ(step.seconds(), -3'003s);
}

}  // namespace
}  // namespace weir::net
