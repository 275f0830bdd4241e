#include "weir/proxy/clearing.hpp"

#include <chrono>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Rank = Clearing::Rank;

// A watched object whose tick comes after that of the clearing, as those of sessions do.
class Room final : public net::Watched {
 public:
  Room(net::Watchdog& watchdog, Clearing& clearing) : Watched(watchdog), clearing_(clearing) {}

  int quiet = 0, idle = 0, begun = 0;  // who could go
  int went = 0;
  int ticks = 0;
  bool wanted = false;  // at each tick one place is
  Rank most = Rank::Begun;

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override {
    ++ticks;
    leave(quiet, Rank::Quiet);
    leave(idle, Rank::Idle);
    leave(begun, Rank::Begun);
    if (wanted) clearing_.want(1, most);
  }
  void leave(int& of, Rank rank) noexcept {
    while (of > 0 && clearing_.takes(rank)) {
      --of;
      ++went;
    }
  }

  Clearing& clearing_;
};

class ClearingTest : public ::testing::Test {
 protected:
  ClearingTest() : watchdog(context.get_executor()), clearing(watchdog), room(watchdog, clearing) {
    watchdog.start();
  }
  void tick(int times) {
    for (const int until = room.ticks + times; room.ticks < until;) context.run_one();
  }

  boost::asio::io_context context{1};
  net::Watchdog watchdog;
  Clearing clearing;
  Room room;
};

TEST_F(ClearingTest, NobodyGoesUnlessSomebodyIsWanted) {
  room.quiet = room.idle = room.begun = 1;
  tick(4);
  EXPECT_EQ(room.went, 0);
}

TEST_F(ClearingTest, TheQuietGoFirstThenTheIdleThenWhoHasBegun) {
  room.quiet = room.idle = room.begun = 1;
  room.wanted = true;
  tick(2);
  EXPECT_EQ(room.went, 1);
  EXPECT_EQ(room.quiet, 0);
  tick(2);
  EXPECT_EQ(room.idle, 0);
  EXPECT_EQ(room.begun, 1) << "somebody else could still go";
  tick(3);
  EXPECT_EQ(room.begun, 0);
  EXPECT_EQ(room.went, 3);
}

TEST_F(ClearingTest, NobodyGoesBeyondTheRankThatIsWanted) {
  room.idle = room.begun = 1;
  room.wanted = true;
  room.most = Rank::Idle;
  tick(10);
  EXPECT_EQ(room.idle, 0);
  EXPECT_EQ(room.begun, 1);
}

TEST_F(ClearingTest, WhoHasBegunStaysWhileOthersCanGo) {
  room.idle = 100;
  room.begun = 1;
  room.wanted = true;
  tick(50);
  EXPECT_EQ(room.begun, 1);
  EXPECT_GT(room.went, 10);
}

}  // namespace
}  // namespace weir::proxy
