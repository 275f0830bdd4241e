#include "weir/net/watchdog.hpp"

#include "unit/net/sockets.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// A watched object that records the time of on_late(), and then calls a function that the test has set.
class Watcher final : public Watched {
 public:
  explicit Watcher(Watchdog& watchdog) : Watched(watchdog) {}

  void begin(base::Duration wait) {
    armed_at_ = SteadyClock::now();
    arm(wait);
  }
  using Watched::disarm;
  using Watched::wake;
  using Watched::wake_all;

  [[nodiscard]] SteadyClock::duration waited() const { return late_at - armed_at_; }

  SteadyClock::time_point late_at{};
  int times_late = 0;
  int ticks = 0;
  bool dozes = false;
  std::function<void()> at_tick = [] {};

 private:
  void on_late() noexcept override {
    late_at = SteadyClock::now();
    ++times_late;
  }
  void on_tick() noexcept override {
    ++ticks;
    if (dozes) skip_ticks();
    at_tick();
  }

  SteadyClock::time_point armed_at_{};
};

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() : watchdog(context.get_executor()) { watchdog.start(); }

  // Runs the event loop until `watcher`, which does not skip ticks, has got `more` ticks.
  void tick(const Watcher& watcher, int more) {
    ASSERT_TRUE(turn_until(context, [&, until = watcher.ticks + more] { return watcher.ticks >= until; }));
  }

  bool wait_for(const Watcher& watcher, int times = 1) {
    return turn_until(context, [&] { return watcher.times_late >= times; });
  }

  asio::io_context context{1};
  Watchdog watchdog;
};

// How much later than the two ticks of its contract the watchdog may call on_late() on a busy machine.
constexpr auto kPatience = milliseconds(500);

TEST_F(WatchdogTest, DeadlineIsNeverEarlyAndAtMostTwoTicksLate) {
  for (const auto wait : {0, 1, 49, 50, 51, 100, 120}) {
    Watcher watcher(watchdog);
    watcher.begin(milliseconds(wait));
    ASSERT_TRUE(wait_for(watcher));
    EXPECT_GE(watcher.waited(), milliseconds(wait));
    EXPECT_LE(watcher.waited(), milliseconds(wait) + 2 * Watchdog::kTick + kPatience);
  }
}

TEST_F(WatchdogTest, DeadlineInTwoTicksExpiresAtTheThirdTick) {
  Watcher watcher(watchdog);
  watcher.begin(2 * Watchdog::kTick);
  ASSERT_TRUE(wait_for(watcher));
  EXPECT_EQ(watcher.ticks, 3);
}

// The watchdog must not make up for missed ticks. Otherwise deadlines that were set while the event loop was
// blocked would come too early.
TEST_F(WatchdogTest, DeadlineIsNotEarlyAfterTheEventLoopWasBlocked) {
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

TEST_F(WatchdogTest, ExpiredDeadlineIsReportedOnce) {
  Watcher watcher(watchdog);
  watcher.begin(milliseconds(1));
  ASSERT_TRUE(wait_for(watcher));
  ASSERT_TRUE(turn_until(context, [&] { return watcher.ticks >= 6; }));
  EXPECT_EQ(watcher.times_late, 1);
  watcher.begin(milliseconds(1));
  ASSERT_TRUE(wait_for(watcher, 2));
}

TEST_F(WatchdogTest, NewDeadlineReplacesTheOldDeadlineAndDisarmRemovesIt) {
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

TEST_F(WatchdogTest, DestroyedObjectsAreForgottenAndManyOthersAreStillWatched) {
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

constexpr int kSkippedTicks = Watchdog::kSkippedTicks;

TEST_F(WatchdogTest, ObjectThatSkipsTicksGetsOneTickASecond) {
  Watcher awake(watchdog);
  Watcher dozing(watchdog);
  dozing.dozes = true;
  tick(awake, 1 + 2 * kSkippedTicks - 1);
  EXPECT_EQ(dozing.ticks, 2);
  tick(awake, 2);
  EXPECT_EQ(dozing.ticks, 3);
}

TEST_F(WatchdogTest, DeadlineOfAnObjectThatSkipsTicksIsAsExactAsOtherDeadlines) {
  Watcher awake(watchdog);
  Watcher soon(watchdog), later(watchdog), armed(watchdog);
  soon.dozes = later.dozes = armed.dozes = true;
  soon.begin(3 * Watchdog::kTick);
  later.begin((kSkippedTicks + 3) * Watchdog::kTick);
  tick(awake, 3);
  EXPECT_EQ(soon.times_late, 0);
  armed.begin(2 * Watchdog::kTick);
  tick(awake, 2);
  EXPECT_EQ(soon.times_late, 1);
  EXPECT_EQ(armed.times_late, 0);
  tick(awake, 2);
  EXPECT_EQ(armed.times_late, 1);
  tick(awake, kSkippedTicks - 4);
  EXPECT_EQ(later.times_late, 0);
  tick(awake, 2);
  EXPECT_EQ(later.times_late, 1);
}

TEST_F(WatchdogTest, WokenObjectGetsTheNextTick) {
  Watcher awake(watchdog);
  Watcher dozing(watchdog);
  dozing.dozes = true;
  tick(awake, 2);
  dozing.dozes = false;
  dozing.wake();
  tick(awake, 3);
  EXPECT_GE(dozing.ticks, 1 + 2);
}

TEST_F(WatchdogTest, FirstObjectCanWakeObjectsThatWaitForTheSameTick) {
  Watcher first(watchdog);
  Watcher dozing(watchdog), doze_on(watchdog);
  dozing.dozes = doze_on.dozes = true;
  tick(first, 2);
  int at_once = 0;
  first.at_tick = [&] {
    if (first.ticks == 5) first.wake_all();
    if (first.ticks == 6) at_once = dozing.ticks + doze_on.ticks - 2;
  };
  tick(first, 4);
  EXPECT_EQ(at_once, 2);
  tick(first, 4);
  EXPECT_EQ(dozing.ticks, 2) << "the object dozes again";
}

// `alone` is the only object that does not skip ticks. `dozing` skips ticks until it is woken.
TEST_F(WatchdogTest, SingleAwakeObjectCanWakeObjectsThatWaitForTheSameTick) {
  Watcher dozing(watchdog);
  dozing.dozes = true;
  Watcher alone(watchdog);
  tick(alone, 2);
  int at_once = 0;
  alone.at_tick = [&] {
    if (alone.ticks == 4) alone.wake_all();
    if (alone.ticks == 5) at_once = dozing.ticks;
  };
  tick(alone, 4);
  EXPECT_EQ(at_once, 2);
}

// A tick of many objects takes several turns of the event loop. Other tasks run between these turns. They may
// create objects, or destroy objects that the tick has not checked yet.
TEST_F(WatchdogTest, OtherTasksRunDuringATickOfManyObjects) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (std::size_t i = 0; i < 3 * Watchdog::kAtOnce; ++i)
    watchers.push_back(std::make_unique<Watcher>(watchdog));
  std::unique_ptr<Watcher> late_comer;
  bool served = false;
  watchers.front()->at_tick = [&] {
    if (watchers.front()->ticks > 1) return;
    asio::post(context, [&] {
      served = true;
      EXPECT_EQ(watchers.at(Watchdog::kAtOnce - 1)->ticks, 1);
      EXPECT_EQ(watchers.at(Watchdog::kAtOnce)->ticks, 0);
      watchers.erase(watchers.begin() + Watchdog::kAtOnce, watchers.begin() + 2 * Watchdog::kAtOnce);
      late_comer = std::make_unique<Watcher>(watchdog);
      late_comer->begin(Watchdog::kTick);
    });
  };
  tick(*watchers.back(), 1);
  EXPECT_TRUE(served);
  EXPECT_EQ(late_comer->ticks, 0) << "the object was created during this tick";
  tick(*watchers.back(), 2);
  ASSERT_TRUE(wait_for(*late_comer));
  EXPECT_GE(late_comer->waited(), Watchdog::kTick);
  for (const auto& watcher : watchers) EXPECT_NEAR(watcher->ticks, watchers.back()->ticks, 1);
}

// Other tasks may make a turn of the event loop long. A tick must not need so many turns that it delays the
// next tick.
TEST_F(WatchdogTest, DeadlineIsOnTimeWithManyAwakeObjectsAndABusyEventLoop) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (std::size_t i = 0; i < 20 * Watchdog::kAtOnce; ++i)
    watchers.push_back(std::make_unique<Watcher>(watchdog));
  constexpr milliseconds kTurn{5};
  int turns = 0;
  std::function<void()> others = [&] {
    ++turns;
    std::this_thread::sleep_for(kTurn);
    asio::post(context, others);
  };
  asio::post(context, others);
  auto& last = *watchers.back();
  last.begin(milliseconds(1000));
  ASSERT_TRUE(wait_for(last, 1));
  EXPECT_GE(last.waited(), milliseconds(1000));
  // Counts turns instead of time, because turns take longer on a busy machine. The bound is 300 turns of 5
  // ms: the 1000 ms, and ten ticks of 50 ms. The deadline expires at the 21st tick. If a tick checked only
  // kAtOnce objects in each turn, it would take 20 turns, and 21 ticks would take 420.
  EXPECT_LE(turns, (milliseconds(1000) + 10 * Watchdog::kTick) / kTurn);
}

// The watchdog is stopped when a tick has checked only some of the objects. After the next start it checks
// the remaining objects.
TEST_F(WatchdogTest, CanBeStoppedDuringATickAndStartedAgain) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (std::size_t i = 0; i < 2 * Watchdog::kAtOnce; ++i)
    watchers.push_back(std::make_unique<Watcher>(watchdog));
  watchers.front()->at_tick = [&] { watchdog.stop(); };
  tick(*watchers.front(), 1);
  context.restart();
  context.run_for(milliseconds(200));
  EXPECT_EQ(watchers.back()->ticks, 0);
  watchers.front()->at_tick = [] {};
  watchdog.start();
  tick(*watchers.front(), 1);
  EXPECT_EQ(watchers.back()->ticks, 1);
}

TEST_F(WatchdogTest, EventLoopCanEndAfterStop) {
  Watcher watcher(watchdog);
  ASSERT_TRUE(turn_until(context, [&] { return watcher.ticks >= 1; }));
  watchdog.stop();
  context.restart();
  context.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(context.stopped()) << "the event loop still has work";
}

TEST_F(WatchdogTest, ObjectCanStopTheWatchdogDuringItsTick) {
  Watcher watcher(watchdog);
  watcher.at_tick = [&] { watchdog.stop(); };
  context.run_for(milliseconds(300));
  EXPECT_EQ(watcher.ticks, 1);
  EXPECT_TRUE(context.stopped()) << "the event loop still has work";
}

}  // namespace
}  // namespace weir::net
