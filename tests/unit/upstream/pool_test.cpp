#include "weir/upstream/pool.hpp"

#include "unit/net/sockets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <vector>

#include <boost/asio/error.hpp>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using net::Watchdog;

net::Task<net::ErrorCode> connect(Lease& lease) {
  return lease.connect();
}

net::Task<net::ErrorCode> until_readable(Lease& lease) {
  co_return co_await lease.stream().wait_readable();
}

// Counts ticks beside the pool's own.
class Ticks final : public net::Watched {
 public:
  explicit Ticks(Watchdog& watchdog) : Watched(watchdog) {}
  int seen = 0;

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override { ++seen; }
};

// An upstream of servers that listen here; nobody accepts, the kernel's backlog does.
class PoolTest : public ::testing::Test {
 protected:
  PoolTest() : watchdog(context.get_executor()), ticks(watchdog) { watchdog.start(); }

  Pool& open(std::size_t count, Balance balance = Balance::LeastInFlight) {
    pool.reset();
    listeners.clear();
    settings.name = "api";
    settings.balance = balance;
    settings.servers.clear();
    for (std::size_t i = 0; i < count; ++i) {
      listeners.push_back(
          net::ListeningSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value());
      settings.servers.push_back(listeners.back()->address());
    }
    servers = resolve_servers(settings).value();
    return pool.emplace(context.get_executor(), watchdog, settings, servers);
  }
  // The connection that waits at a server longest; the others there are lost.
  net::Socket accept(std::size_t server) {
    auto listening = std::move(*listeners[server]);
    auto again = listening.again();
    listeners[server].emplace(std::move(*again));
    auto acceptor = std::move(listening).into_acceptor(context.get_executor());
    return acceptor.accept();
  }
  net::ErrorCode connected(Lease& lease) { return net::run(context, connect(lease)); }
  void pass(int count) {
    const int end = ticks.seen + count;
    ASSERT_TRUE(net::turn_until(context, [&] { return ticks.seen >= end; }));
  }

  net::asio::io_context context{1};
  Watchdog watchdog;
  Ticks ticks;
  UpstreamSettings settings;
  std::vector<std::optional<net::ListeningSocket>> listeners;
  std::vector<Server> servers;
  std::optional<Pool> pool;
};

TEST_F(PoolTest, RoundRobinTakesEachInTurn) {
  auto& p = open(3, Balance::RoundRobin);
  std::vector<std::size_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(p.lease().server());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST_F(PoolTest, RoundRobinSharesEvenlyAmongThoseThatAreLeft) {
  auto& p = open(4, Balance::RoundRobin);
  std::array<int, 4> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease(0b0010).server()];
  EXPECT_EQ(taken, (std::array<int, 4>{10, 0, 10, 10}));
}

TEST_F(PoolTest, LeastInFlightTakesTheLeastBusy) {
  auto& p = open(3);
  std::vector<Lease> held;
  for (int i = 0; i < 6; ++i) held.push_back(p.lease());
  std::array<int, 3> busy{};
  for (const auto& lease : held) ++busy[lease.server()];
  EXPECT_EQ(busy, (std::array<int, 3>{2, 2, 2}));
  const auto freed = held[3].server();
  held.erase(held.begin() + 3);
  EXPECT_EQ(p.lease().server(), freed);
}

TEST_F(PoolTest, LeastInFlightTakesEqualsInTurn) {
  auto& p = open(3);
  std::array<int, 3> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease().server()];
  EXPECT_EQ(taken, (std::array<int, 3>{10, 10, 10}));
}

// Of four servers one is free, three are busy. Of the six pairs of two three hold the free one: it gets half
// of what comes. Neighbours alone would give it as much, but the busy ones' shares give them away: see the
// next test.
TEST_F(PoolTest, RandomTwoTakesTheLessBusyOfTwo) {
  auto& p = open(4, Balance::RandomTwo);
  std::vector<Lease> held;
  for (std::size_t server = 0; server < 3; ++server) held.push_back(p.lease(~(std::uint64_t{1} << server)));
  int free_one = 0;
  for (int i = 0; i < 20'000; ++i)
    if (p.lease().server() == 3) ++free_one;
  EXPECT_NEAR(free_one, 10'000, 600);
}

// Loads 0, 1, 2, 3: a pair yields the less busy, so with independent draws the shares are 3/6, 2/6, 1/6 and
// none. Drawn as neighbours on a ring (pairs 01, 12, 23, 30) they would be 2/4, 1/4, 1/4 and none.
TEST_F(PoolTest, RandomTwoDrawsTheTwoIndependently) {
  auto& p = open(4, Balance::RandomTwo);
  std::vector<Lease> held;
  for (std::size_t server = 0; server < 4; ++server)
    for (std::size_t i = 0; i < server; ++i) held.push_back(p.lease(~(std::uint64_t{1} << server)));
  std::array<int, 4> taken{};
  for (int i = 0; i < 60'000; ++i) ++taken[p.lease().server()];
  EXPECT_NEAR(taken[0], 30'000, 1'000);
  EXPECT_NEAR(taken[1], 20'000, 1'000);
  EXPECT_NEAR(taken[2], 10'000, 1'000);
  EXPECT_EQ(taken[3], 0);
}

TEST_F(PoolTest, RandomTwoOfEqualsIsEvenWhateverWasTried) {
  auto& p = open(5, Balance::RandomTwo);
  std::array<int, 5> taken{};
  for (int i = 0; i < 40'000; ++i) ++taken[p.lease(0b00010).server()];
  EXPECT_EQ(taken[1], 0);
  for (const std::size_t server : {0U, 2U, 3U, 4U}) EXPECT_NEAR(taken[server], 10'000, 600) << server;
}

TEST_F(PoolTest, WhatWasTriedIsPassedOverUntilNothingIsLeft) {
  for (const auto balance : {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo}) {
    auto& p = open(3, balance);
    std::uint64_t tried = 0;
    for (int i = 0; i < 3; ++i) {
      const auto lease = p.lease(tried);
      ASSERT_TRUE(lease);
      EXPECT_EQ(tried >> lease.server() & 1U, 0U);
      tried |= std::uint64_t{1} << lease.server();
    }
    EXPECT_FALSE(p.lease(tried));
  }
  EXPECT_FALSE(open(1).lease(1));
  EXPECT_TRUE(open(1).lease(0));
}

TEST_F(PoolTest, SixtyFourServersAreAllReached) {
  for (const auto balance : {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo}) {
    auto& p = open(kMaxServers, balance);
    std::uint64_t tried = 0;
    for (std::size_t i = 0; i < kMaxServers; ++i) tried |= std::uint64_t{1} << p.lease(tried).server();
    EXPECT_EQ(tried, ~std::uint64_t{0});
  }
}

TEST_F(PoolTest, AConnectionServesAgainOnlyIfItIsKept) {
  auto& p = open(1);
  {
    auto lease = p.lease();
    EXPECT_FALSE(lease.connected());
    ASSERT_FALSE(connected(lease));
    EXPECT_TRUE(lease.connected());
    EXPECT_FALSE(lease.reused());
    lease.keep();
  }
  {
    auto lease = p.lease();
    EXPECT_TRUE(lease.connected());
    EXPECT_TRUE(lease.reused());
    EXPECT_FALSE(p.lease().connected()) << "one connection is lent to two";
  }
  EXPECT_FALSE(p.lease().connected()) << "what was not kept came back";
}

TEST_F(PoolTest, AFreshLeaseLeavesTheWaitingOnesAlone) {
  auto& p = open(1);
  {
    auto lease = p.lease();
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  EXPECT_FALSE(p.lease(0, true).connected());
  EXPECT_TRUE(p.lease().connected());
}

TEST_F(PoolTest, NoMoreAreKeptThanTheSettingsSay) {
  settings.max_idle = 2;
  auto& p = open(1);
  {
    std::vector<Lease> held;
    for (int i = 0; i < 3; ++i) {
      held.push_back(p.lease());
      ASSERT_FALSE(connected(held.back()));
      held.back().keep();
    }
  }
  std::vector<Lease> held;
  int reused = 0;
  for (int i = 0; i < 3; ++i) {
    held.push_back(p.lease());
    if (held.back().reused()) ++reused;
  }
  EXPECT_EQ(reused, 2);
}

TEST_F(PoolTest, AMovedLeaseGivesBackOnce) {
  auto& p = open(2);
  {
    auto one = p.lease();
    const auto first = one.server();
    auto other = std::move(one);
    EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): what a lease that was moved from says is the test
    EXPECT_EQ(other.server(), first);
    EXPECT_NE(p.lease().server(), first) << "its place was given back by the move";
    other = p.lease();
    EXPECT_NE(other.server(), first);
  }
  std::vector<Lease> held;
  std::array<int, 2> busy{};
  for (int i = 0; i < 10; ++i) held.push_back(p.lease());
  for (const auto& lease : held) ++busy[lease.server()];
  EXPECT_EQ(busy, (std::array<int, 2>{5, 5}));
}

TEST_F(PoolTest, AConnectionThatTheServerClosedOrSpokeOnIsStale) {
  for (const bool speaks : {false, true}) {
    auto& p = open(1);
    net::ErrorCode ec;
    auto lease = p.lease();
    ASSERT_FALSE(connected(lease));
    EXPECT_FALSE(lease.went_stale());
    auto theirs = accept(0);
    if (speaks)
      net::send_all(theirs.native_handle(), "x");
    else
      theirs.close(ec);
    EXPECT_FALSE(net::run(context, until_readable(lease)));
    errno = EAGAIN;  // of some earlier call
    EXPECT_TRUE(lease.went_stale());
  }
}

TEST_F(PoolTest, AServerThatRefusesIsPassedOverForAMoment) {
  auto& p = open(2, Balance::RoundRobin);
  listeners[0].reset();
  {
    auto lease = p.lease(0b10);
    EXPECT_EQ(connected(lease), net::asio::error::connection_refused);
    EXPECT_FALSE(lease.connected());
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease().server(), 1U);
  EXPECT_EQ(p.lease(0b10).server(), 0U) << "better one that failed than none";
  pass(20);  // a second
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease().server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2}));
}

TEST_F(PoolTest, WhereAllFailedAllAreTriedInTurn) {
  auto& p = open(2, Balance::RoundRobin);
  listeners.clear();
  for (int i = 0; i < 2; ++i) {
    auto lease = p.lease();
    EXPECT_TRUE(connected(lease));
  }
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease().server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2}));
}

// The client left while the connection was opened: no fault of the server's.
TEST_F(PoolTest, ACancelledConnectDoesNotPutTheServerAside) {
  auto& p = open(2, Balance::RoundRobin);
  {
    auto lease = p.lease();
    net::Running connecting(context, connect(lease));
    ASSERT_EQ(context.poll_one(), 1U);  // the connect has begun; its completion waits in the loop
    lease.cancel();
    const auto ec = connecting.result();
    if (ec) {
      EXPECT_EQ(ec, net::asio::error::operation_aborted);
    }
  }
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease().server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2}));
}

TEST_F(PoolTest, TheCallerCanPutAServerAside) {
  auto& p = open(2, Balance::RoundRobin);
  p.lease(0b10).put_aside();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.lease().server(), 1U);
}

TEST_F(PoolTest, TriesAllAddressesOfAServer) {
  auto& p = open(2);
  const auto dead = servers[0].addresses.front();
  listeners[0].reset();
  servers[0].addresses = {dead, servers[1].addresses.front()};
  auto lease = p.lease(0b10);
  EXPECT_FALSE(connected(lease));
  EXPECT_TRUE(lease.connected());
}

TEST_F(PoolTest, ConnectionsThatWaitTooLongAreClosed) {
  settings.timeouts.idle = 4 * Watchdog::kTick;
  auto& p = open(1);
  {
    auto lease = p.lease();
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  pass(3);
  {
    auto lease = p.lease();
    EXPECT_TRUE(lease.reused());
    lease.keep();
  }
  pass(3);
  {
    auto lease = p.lease();
    EXPECT_TRUE(lease.reused()) << "it was used meanwhile";
    lease.keep();
  }
  auto theirs = accept(0);
  pass(5);
  EXPECT_FALSE(p.lease().reused());
  EXPECT_EQ(net::receive(theirs.native_handle()), "") << "it is still open";
}

TEST(ResolveServers, AnErrorNamesUpstreamAndServer) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.servers = {{.host = "no such host", .port = 1, .unix_path = {}}};
  const auto servers = resolve_servers(settings);
  ASSERT_FALSE(servers);
  EXPECT_TRUE(servers.error().message.starts_with("upstream \"api\": cannot resolve \"no such host\": "));
}

}  // namespace
}  // namespace weir::upstream
