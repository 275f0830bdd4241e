#include "unit/upstream/pool_stage.hpp"

#include <array>
#include <cerrno>
#include <tuple>
#include <vector>

#include <boost/asio/error.hpp>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

TEST_F(PoolTest, OnlyAConnectionThatItsRequestMarkedAsReusableIsReused) {
  auto& p = open(1);
  {
    auto lease = p.lease({});
    EXPECT_FALSE(lease.connected());
    ASSERT_FALSE(connected(lease));
    EXPECT_TRUE(lease.connected());
    EXPECT_FALSE(lease.reused());
    lease.keep();
  }
  {
    auto lease = p.lease({});
    EXPECT_TRUE(lease.connected());
    EXPECT_TRUE(lease.reused());
    EXPECT_FALSE(p.lease({}).connected()) << "one connection is leased twice";
  }
  EXPECT_FALSE(p.lease({}).connected()) << "a connection that was not kept was reused";
}

TEST_F(PoolTest, RequestForANewConnectionUsesNoIdleConnection) {
  auto& p = open(1);
  {
    auto lease = p.lease({});
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  EXPECT_FALSE(p.lease({.fresh = true}).connected());
  EXPECT_TRUE(p.lease({}).connected());
}

TEST_F(PoolTest, AtMostMaxIdleConnectionsAreKept) {
  settings.max_idle = 2;
  auto& p = open(1);
  {
    std::vector<Lease> held;
    for (int i = 0; i < 3; ++i) {
      held.push_back(p.lease({}));
      ASSERT_FALSE(connected(held.back()));
      held.back().keep();
    }
  }
  std::vector<Lease> held;
  int reused = 0;
  for (int i = 0; i < 3; ++i) {
    held.push_back(p.lease({}));
    if (held.back().reused()) ++reused;
  }
  EXPECT_EQ(reused, 2);
}

TEST_F(PoolTest, KeepsAllConnectionsOfAPeakByDefault) {
  constexpr int kPeak = 300;
  auto& p = open(1);
  for (int round = 0; round < 2; ++round) {
    std::vector<Lease> held;
    for (int i = 0; i < kPeak; ++i) {
      held.push_back(p.lease({}));
      EXPECT_EQ(held.back().reused(), round == 1) << i;
      if (!held.back().connected()) {
        ASSERT_FALSE(connected(held.back()));
      }
      held.back().keep();
    }
  }
}

TEST_F(PoolTest, DropsIdleConnectionsOnDemand) {
  auto& p = open(1);
  auto busy = p.lease({});
  ASSERT_FALSE(connected(busy));
  {
    auto idle = p.lease({});
    ASSERT_FALSE(connected(idle));
    idle.keep();
  }
  EXPECT_EQ(p.idle_connections(), 1U);
  p.drop_idle();
  EXPECT_EQ(p.idle_connections(), 0U);
  EXPECT_FALSE(p.lease({}).reused());
  EXPECT_TRUE(busy.connected());
}

TEST_F(PoolTest, MovedLeaseReleasesItsServerOnce) {
  auto& p = open(2);
  {
    auto one = p.lease({});
    const auto first = one.server();
    auto other = std::move(one);
    EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): the test is about a moved-from lease
    EXPECT_EQ(other.server(), first);
    EXPECT_NE(p.lease({}).server(), first) << "the move released the place of the server";
    other = p.lease({});
    EXPECT_NE(other.server(), first);
  }
  std::vector<Lease> held;
  std::array<int, 2> busy{};
  for (int i = 0; i < 10; ++i) held.push_back(p.lease({}));
  for (const auto& lease : held) ++busy[lease.server()];
  EXPECT_EQ(busy, (std::array<int, 2>{5, 5}));
}

// The next request would read unexpected bytes as its answer. The pool must notice such bytes, and a close,
// even if the event loop has not asked the kernel for events since the connection became idle.
TEST_F(PoolTest, IdleConnectionThatTheServerClosedOrSentBytesOnIsNotReused) {
  for (const auto& [speaks, once, loop_runs] : {std::tuple{false, true, false},
                                                {true, true, false},
                                                {false, false, false},
                                                {true, false, false},
                                                {false, false, true},
                                                {true, false, true}}) {
    auto& p = open(1);
    net::ErrorCode ec;
    {
      auto lease = p.lease({});
      ASSERT_FALSE(connected(lease));
      lease.keep();
    }
    auto theirs = accept(0);
    errno = EAGAIN;  // an earlier call may have left this error
    EXPECT_TRUE(p.lease({.once = once}).connected()) << "no byte was received";
    {
      auto lease = p.lease({});
      ASSERT_FALSE(connected(lease));
      lease.keep();
    }
    theirs = accept(0);
    if (speaks)
      net::send_all(theirs.native_handle(), "x");
    else
      theirs.close(ec);
    if (loop_runs) pass(1);
    EXPECT_FALSE(p.lease({.once = once}).connected()) << speaks << once;
  }
}

// The event loop has asked the kernel for events since the connection became idle, and found it open. If the
// server closes it later, the proxy sends a retryable request again, on another connection. So a system call
// to check the socket would gain little. It is made only if weir cannot send the request again (`once`).
TEST_F(PoolTest, RetryableRequestReusesAWatchedConnectionWithoutCheckingItsSocket) {
  for (const bool once : {false, true}) {
    auto& p = open(1);
    {
      auto lease = p.lease({});
      ASSERT_FALSE(connected(lease));
      lease.keep();
    }
    auto theirs = accept(0);
    auto other = p.lease({.fresh = true});
    ASSERT_FALSE(connected(other)) << "the loop must ask the kernel to connect";
    net::ErrorCode ec;
    theirs.close(ec);
    EXPECT_EQ(p.lease({.once = once}).reused(), !once);
  }
}

TEST_F(PoolTest, PrefersAnIdleConnectionThatTheEventLoopHasWatched) {
  auto& p = open(1);
  auto watched = p.lease({});
  auto unwatched = p.lease({.fresh = true});
  ASSERT_FALSE(connected(watched));
  const auto* const stream = &watched.stream();
  watched.keep();
  watched = Lease();
  ASSERT_FALSE(connected(unwatched));
  unwatched.keep();
  unwatched = Lease();
  auto first = p.lease({});
  EXPECT_EQ(&first.stream(), stream);
  EXPECT_TRUE(p.lease({}).reused()) << "the other one serves if it must";
}

TEST_F(PoolTest, ErrorOfARefusedConnectIsReturned) {
  auto& p = open(1);
  listeners[0].reset();
  auto lease = p.lease({});
  EXPECT_EQ(connected(lease), net::asio::error::connection_refused);
  EXPECT_FALSE(lease.connected());
}

TEST_F(PoolTest, AllAddressesOfAServerAreTried) {
  open(2);
  const auto dead = servers[0].addresses.front();
  listeners[0].reset();
  servers[0].addresses = {dead, servers[1].addresses.front()};
  pool.reset();
  auto& p = pool.emplace(context.get_executor(), watchdog, server_group.emplace(settings, servers));
  auto lease = p.lease({.tried = 0b10});
  EXPECT_FALSE(connected(lease));
  EXPECT_TRUE(lease.connected());
}

TEST_F(PoolTest, AddressThatLastConnectedIsTriedFirst) {
  open(2);
  const auto dead = servers[0].addresses.front();
  const auto good = servers[1].addresses.front();
  listeners[0].reset();
  servers[0].addresses = {dead, good};
  pool.reset();
  auto& p = pool.emplace(context.get_executor(), watchdog, server_group.emplace(settings, servers));
  auto& member = server_group->member(0);
  const auto before = member.location();
  EXPECT_EQ(before.first, 0U);
  auto lease = p.lease({.tried = 0b10});
  EXPECT_FALSE(connected(lease));
  EXPECT_EQ(member.location().first, 1U);
  member.move_to({dead, dead, good}, now);
  EXPECT_EQ(member.location().first, 2U) << "the address that connected last stays the same";
  member.move_to({good}, now);
  EXPECT_EQ(member.location().first, 0U);
  member.begin_with(1, before);
  EXPECT_EQ(member.location().first, 0U) << "the position referred to addresses that are gone";
}

TEST_F(PoolTest, ConnectionsThatAreIdleTooLongAreClosed) {
  settings.timeouts.idle = 4 * net::Watchdog::kTick;
  auto& p = open(1);
  {
    auto lease = p.lease({});
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  pass(3);
  {
    auto lease = p.lease({});
    EXPECT_TRUE(lease.reused());
    lease.keep();
  }
  pass(3);
  {
    auto lease = p.lease({});
    EXPECT_TRUE(lease.reused()) << "the connection was used meanwhile";
    lease.keep();
  }
  auto theirs = accept(0);
  pass(5);
  EXPECT_FALSE(p.lease({}).reused());
  EXPECT_EQ(net::receive(theirs.native_handle()), "") << "the connection is still open";
}

}  // namespace
}  // namespace weir::upstream
