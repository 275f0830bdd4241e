#include "weir/net/watchdog.hpp"

#include "unit/net/sockets.hpp"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Notes when it was late, and what it was told to do then.
class Watcher final : public Watched {
 public:
  explicit Watcher(Watchdog& watchdog) : Watched(watchdog) {}

  void begin(base::Duration wait) {
    armed_at_ = SteadyClock::now();
    arm(wait);
  }
  using Watched::disarm;

  [[nodiscard]] SteadyClock::duration waited() const { return late_at - armed_at_; }

  SteadyClock::time_point late_at{};
  int times_late = 0;
  int ticks = 0;
  Watchdog* stops = nullptr;

 private:
  void on_late() noexcept override {
    late_at = SteadyClock::now();
    ++times_late;
  }
  void on_tick() noexcept override {
    ++ticks;
    if (stops != nullptr) stops->stop();
  }

  SteadyClock::time_point armed_at_{};
};

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() : watchdog(context.get_executor()) { watchdog.start(); }

  bool wait_for(const Watcher& watcher, int times = 1) {
    return turn_until(context, [&] { return watcher.times_late >= times; });
  }

  asio::io_context context{1};
  Watchdog watchdog;
};

// What a busy machine adds; a defect adds whole ticks more.
constexpr auto kPatience = milliseconds(500);

TEST_F(WatchdogTest, IsNeverEarlyAndSoonEnough) {
  for (const auto wait : {0, 1, 49, 50, 51, 100, 120}) {
    Watcher watcher(watchdog);
    watcher.begin(milliseconds(wait));
    ASSERT_TRUE(wait_for(watcher));
    EXPECT_GE(watcher.waited(), milliseconds(wait));
    EXPECT_LE(watcher.waited(), milliseconds(wait) + 2 * Watchdog::kTick + kPatience);
  }
}

TEST_F(WatchdogTest, TakesTwoTicksAtMost) {
  Watcher watcher(watchdog);
  watcher.begin(2 * Watchdog::kTick);
  ASSERT_TRUE(wait_for(watcher));
  EXPECT_EQ(watcher.ticks, 3);
}

// Ticks that were missed are not made up for: what was armed meanwhile would be late too early.
TEST_F(WatchdogTest, IsNotEarlyAfterTheWorkerWasHeldUp) {
  for (const auto held : {20, 60, 130, 210}) {
    Watcher watcher(watchdog);
    asio::post(context, [&] {
      std::this_thread::sleep_for(milliseconds(held));
      watcher.begin(Watchdog::kTick);
    });
    ASSERT_TRUE(wait_for(watcher));
    EXPECT_GE(watcher.waited(), Watchdog::kTick) << held;
  }
}

TEST_F(WatchdogTest, LateOnceForEachTimeItIsArmed) {
  Watcher watcher(watchdog);
  watcher.begin(milliseconds(1));
  ASSERT_TRUE(wait_for(watcher));
  ASSERT_TRUE(turn_until(context, [&] { return watcher.ticks >= 6; }));
  EXPECT_EQ(watcher.times_late, 1);
  watcher.begin(milliseconds(1));
  ASSERT_TRUE(wait_for(watcher, 2));
}

TEST_F(WatchdogTest, ALaterDeadlineReplacesAnEarlierOneAndDisarmEndsIt) {
  Watcher put_off(watchdog);
  Watcher disarmed(watchdog);
  put_off.begin(milliseconds(1));
  put_off.begin(milliseconds(200));
  disarmed.begin(milliseconds(1));
  disarmed.disarm();
  ASSERT_TRUE(wait_for(put_off));
  EXPECT_GE(put_off.waited(), milliseconds(200));
  EXPECT_EQ(disarmed.times_late, 0);
}

TEST_F(WatchdogTest, WatchesManyAndForgetsWhoIsGone) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 100; ++i) watchers.push_back(std::make_unique<Watcher>(watchdog));
  for (auto& watcher : watchers) watcher->begin(milliseconds(60));
  for (int i = 0; i < 50; ++i) watchers.erase(watchers.begin() + i);
  ASSERT_TRUE(turn_until(context, [&] {
    for (const auto& watcher : watchers)
      if (watcher->times_late == 0) return false;
    return true;
  }));
}

TEST_F(WatchdogTest, StopEndsTheTicking) {
  Watcher watcher(watchdog);
  ASSERT_TRUE(turn_until(context, [&] { return watcher.ticks >= 1; }));
  watchdog.stop();
  context.restart();
  context.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(context.stopped()) << "the loop still has work";
}

TEST_F(WatchdogTest, CanBeStoppedFromWithinATick) {
  Watcher watcher(watchdog);
  watcher.stops = &watchdog;
  context.run_for(milliseconds(300));
  EXPECT_EQ(watcher.ticks, 1);
  EXPECT_TRUE(context.stopped()) << "the loop still has work";
}

}  // namespace
}  // namespace weir::net
