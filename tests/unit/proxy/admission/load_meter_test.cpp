#include "weir/proxy/load_meter.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;

constexpr base::Duration kTick = milliseconds(50);

class LoadMeterTest : public ::testing::Test {
 protected:
  // Makes a measurement, `span` after the previous one. `computed` is the CPU time that the thread used in
  // `span`.
  void pass(base::Duration span, base::Duration computed, double queue = 0, double in_flight = 0) {
    now_ += span;
    computed_ += computed;
    meter.measure({.now = now_, .computed = computed_, .queue = queue, .in_flight = in_flight});
  }
  [[nodiscard]] double lag() const { return meter.part(LoadKind::Lag); }
  [[nodiscard]] double cpu() const { return meter.part(LoadKind::Cpu); }

  LoadMeter meter{kTick};

 private:
  base::TimePoint now_{std::chrono::seconds(1'700'000'000)};
  base::Duration computed_{milliseconds(1234)};
};

TEST_F(LoadMeterTest, LoadThatIsNotYetKnownCountsAsFullLoad) {
  EXPECT_EQ(meter.load(), 1);
  EXPECT_EQ(cpu(), 1);
  pass(milliseconds(700), milliseconds(0));
  EXPECT_EQ(meter.load(), 1) << "without an earlier reading, the load is unknown";
  pass(kTick, milliseconds(10));
  EXPECT_DOUBLE_EQ(cpu(), 0.2) << "the second reading is the only measurement";
  EXPECT_DOUBLE_EQ(meter.load(), 0.2);
}

TEST_F(LoadMeterTest, MeasuredCpuLoadHalvesWithEachHalfLifeWithoutLoad) {
  pass(kTick, milliseconds(0));
  pass(kTick, kTick);
  EXPECT_EQ(cpu(), 1);
  for (int i = 0; i < 10; ++i) pass(kTick, milliseconds(0));
  EXPECT_NEAR(cpu(), 0.5, 1e-9) << "half a second of ticks";
  for (int i = 0; i < 10; ++i) pass(kTick, milliseconds(0));
  EXPECT_NEAR(cpu(), 0.25, 1e-9);
}

// The weight of a measurement depends on its duration: one long span weighs as much as many short spans
// together.
TEST_F(LoadMeterTest, CpuMeasurementsAreWeightedByTheirDuration) {
  pass(kTick, milliseconds(0));
  pass(kTick, kTick);
  pass(milliseconds(500), milliseconds(0));
  EXPECT_NEAR(cpu(), 0.5, 1e-9);
  pass(milliseconds(1'000), milliseconds(1'000));
  EXPECT_NEAR(cpu(), 1 - 0.5 / 4, 1e-9);
}

TEST_F(LoadMeterTest, LagOfAnEventLoopIsTheDelayOfItsTick) {
  pass(kTick, milliseconds(0));
  pass(kTick + LoadMeter::kFullLag / 2, milliseconds(0));
  EXPECT_EQ(lag(), 0.5);
  EXPECT_EQ(meter.load(), 0.5);
  for (int i = 0; i < 1'000; ++i) pass(kTick, milliseconds(0));
  EXPECT_NEAR(lag(), 0, 1e-9);
  pass(std::chrono::hours(1), milliseconds(0));
  EXPECT_NEAR(lag(), 1, 1e-9) << "the lag is at most 1";
}

TEST_F(LoadMeterTest, QueueAndInFlightLoadAreNotAveraged) {
  pass(kTick, milliseconds(0));
  pass(kTick, milliseconds(0), 0.75, 0.5);
  EXPECT_EQ(meter.load(), 0.75);
  pass(kTick, milliseconds(0), 0, 1.25);
  EXPECT_EQ(meter.part(LoadKind::Queue), 0);
  EXPECT_EQ(meter.part(LoadKind::InFlight), 1) << "the load is at most 1";
  EXPECT_EQ(meter.load(), 1);
  pass(kTick, milliseconds(0));
  EXPECT_EQ(meter.load(), 0);
}

TEST_F(LoadMeterTest, MoreCpuTimeThanElapsedTimeCountsAsFullLoad) {
  pass(kTick, milliseconds(0));
  // 60 ms of CPU time in a tick of 50 ms. The clock of CPU time may differ from the clock of elapsed time.
  pass(kTick, milliseconds(60));
  EXPECT_EQ(cpu(), 1);
  pass(milliseconds(0), milliseconds(50));
  EXPECT_EQ(cpu(), 1) << "no time passed, so nothing is measured";
}

TEST(ThreadTime, IsTheCpuTimeOfTheCurrentThread) {
  const auto before = thread_time();
  EXPECT_GE(before.count(), 0);
  while (thread_time() == before) {
  }
  EXPECT_GT(thread_time(), before);
}

}  // namespace
}  // namespace weir::proxy
