#include "weir/proxy/idle_evictor.hpp"

#include <chrono>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Rank = IdleEvictor::Rank;

// Stands for the sessions of a worker. Like a session, a Room gets the watchdog's ticks after the
// IdleEvictor.
class Room final : public net::Watched {
 public:
  Room(net::Watchdog& watchdog, IdleEvictor& idle_evictor) : Watched(watchdog), clearing_(idle_evictor) {}

  int quiet = 0, idle = 0, begun = 0;  // for each rank, the number of open connections
  int went = 0;
  int ticks = 0;
  bool wanted = false;  // true: at each tick, asks for the eviction of one connection
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

  IdleEvictor& clearing_;
};

class IdleEvictorTest : public ::testing::Test {
 protected:
  IdleEvictorTest() : watchdog(context.get_executor()), idle_evictor(watchdog), room(watchdog, idle_evictor) {
    watchdog.start();
  }
  void tick(int times) {
    for (const int until = room.ticks + times; room.ticks < until;) context.run_one();
  }

  boost::asio::io_context context{1};
  net::Watchdog watchdog;
  IdleEvictor idle_evictor;
  Room room;
};

TEST_F(IdleEvictorTest, EvictsNoConnectionUnlessRequested) {
  room.quiet = room.idle = room.begun = 1;
  tick(4);
  EXPECT_EQ(room.went, 0);
}

TEST_F(IdleEvictorTest, EvictsIdleConnectionsBeforeConnectionsWithAnIncompleteHead) {
  room.quiet = room.idle = room.begun = 1;
  room.wanted = true;
  tick(2);
  EXPECT_EQ(room.went, 1);
  EXPECT_EQ(room.quiet, 0);
  tick(2);
  EXPECT_EQ(room.idle, 0);
  EXPECT_EQ(room.begun, 1) << "an idle connection was left to evict";
  tick(3);
  EXPECT_EQ(room.begun, 0);
  EXPECT_EQ(room.went, 3);
}

TEST_F(IdleEvictorTest, KeepsConnectionsWithAnIncompleteHeadIfOnlyIdleConnectionsMayBeEvicted) {
  room.idle = room.begun = 1;
  room.wanted = true;
  room.most = Rank::Idle;
  tick(10);
  EXPECT_EQ(room.idle, 0);
  EXPECT_EQ(room.begun, 1);
}

TEST_F(IdleEvictorTest, KeepsConnectionsWithAnIncompleteHeadWhileIdleConnectionsRemain) {
  room.idle = 100;
  room.begun = 1;
  room.wanted = true;
  tick(50);
  EXPECT_EQ(room.begun, 1);
  EXPECT_GT(room.went, 10);
}

}  // namespace
}  // namespace weir::proxy
