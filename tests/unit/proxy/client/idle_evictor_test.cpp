#include "weir/proxy/idle_evictor.hpp"

#include <chrono>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Rank = IdleEvictor::Rank;

// Stands for the sessions of a worker. Like a session, FakeSessions gets the watchdog's ticks after the
// IdleEvictor.
class FakeSessions final : public net::Watched {
 public:
  FakeSessions(net::Watchdog& watchdog, IdleEvictor& idle_evictor)
      : Watched(watchdog), evictor_(idle_evictor) {}

  int quiet = 0, idle = 0, begun = 0;  // number of open connections of each Rank
  int closed = 0;
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
    if (wanted) evictor_.want(1, most);
  }
  void leave(int& of, Rank rank) noexcept {
    while (of > 0 && evictor_.takes(rank)) {
      --of;
      ++closed;
    }
  }

  IdleEvictor& evictor_;
};

class IdleEvictorTest : public ::testing::Test {
 protected:
  IdleEvictorTest()
      : watchdog(context.get_executor()), idle_evictor(watchdog), sessions(watchdog, idle_evictor) {
    watchdog.start();
  }
  void tick(int times) {
    for (const int until = sessions.ticks + times; sessions.ticks < until;) context.run_one();
  }

  boost::asio::io_context context{1};
  net::Watchdog watchdog;
  IdleEvictor idle_evictor;
  FakeSessions sessions;
};

TEST_F(IdleEvictorTest, EvictsNoConnectionUnlessRequested) {
  sessions.quiet = sessions.idle = sessions.begun = 1;
  tick(4);
  EXPECT_EQ(sessions.closed, 0);
}

TEST_F(IdleEvictorTest, EvictsIdleConnectionsBeforeConnectionsWithAnIncompleteHead) {
  sessions.quiet = sessions.idle = sessions.begun = 1;
  sessions.wanted = true;
  tick(2);
  EXPECT_EQ(sessions.closed, 1);
  EXPECT_EQ(sessions.quiet, 0);
  tick(2);
  EXPECT_EQ(sessions.idle, 0);
  EXPECT_EQ(sessions.begun, 1) << "an idle connection was left to evict";
  tick(3);
  EXPECT_EQ(sessions.begun, 0);
  EXPECT_EQ(sessions.closed, 3);
}

TEST_F(IdleEvictorTest, KeepsConnectionsWithAnIncompleteHeadIfOnlyIdleConnectionsMayBeEvicted) {
  sessions.idle = sessions.begun = 1;
  sessions.wanted = true;
  sessions.most = Rank::Idle;
  tick(10);
  EXPECT_EQ(sessions.idle, 0);
  EXPECT_EQ(sessions.begun, 1);
}

TEST_F(IdleEvictorTest, KeepsConnectionsWithAnIncompleteHeadWhileIdleConnectionsRemain) {
  sessions.idle = 100;
  sessions.begun = 1;
  sessions.wanted = true;
  tick(50);
  EXPECT_EQ(sessions.begun, 1);
  EXPECT_GT(sessions.closed, 10);
}

}  // namespace
}  // namespace weir::proxy
