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
  std::string fault;
  const auto ec = co_await lease.connect({}, fault);
  EXPECT_EQ(fault, "") << "nobody speaks TLS";
  co_return ec;
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
    fleet.reset();
    listeners.clear();
    settings.name = "api";
    settings.balance = balance;
    settings.servers.clear();
    for (std::size_t i = 0; i < count; ++i) {
      listeners.push_back(
          net::ListeningSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value());
      settings.servers.push_back({.address = listeners.back()->address()});
    }
    return reopen();
  }
  // With the settings as they are now.
  Pool& reopen() {
    pool.reset();
    servers = resolve_servers(settings).value();
    fleet.emplace(settings, servers, [this](const std::string& line) { lines.push_back(line); });
    return pool.emplace(context.get_executor(), watchdog, *fleet);
  }
  // The name of the only server stands for an address of a network that nobody has (RFC 5737).
  void open_elsewhere() {
    const auto away = net::resolve({.host = "192.0.2.1", .port = 1, .unix_path = {}});
    fleet->member(0).move_to(away.value(), now);
  }
  // A request to one server that could not be connected.
  void fail(std::size_t server) { fleet->member(server).unreachable(now); }
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
  std::vector<std::string> lines;
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  std::optional<Fleet> fleet;
  std::optional<Pool> pool;
};

TEST_F(PoolTest, RoundRobinTakesEachInTurn) {
  auto& p = open(3, Balance::RoundRobin);
  std::vector<std::size_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(p.lease({}).server());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST_F(PoolTest, RoundRobinSharesEvenlyAmongThoseThatAreLeft) {
  auto& p = open(4, Balance::RoundRobin);
  std::array<int, 4> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease({.tried = 0b0010}).server()];
  EXPECT_EQ(taken, (std::array<int, 4>{10, 0, 10, 10}));
}

TEST_F(PoolTest, LeastInFlightTakesTheLeastBusy) {
  auto& p = open(3);
  std::vector<Lease> held;
  for (int i = 0; i < 6; ++i) held.push_back(p.lease({}));
  std::array<int, 3> busy{};
  for (const auto& lease : held) ++busy[lease.server()];
  EXPECT_EQ(busy, (std::array<int, 3>{2, 2, 2}));
  const auto freed = held[3].server();
  held.erase(held.begin() + 3);
  EXPECT_EQ(p.lease({}).server(), freed);
}

TEST_F(PoolTest, LeastInFlightTakesEqualsInTurn) {
  auto& p = open(3);
  std::array<int, 3> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease({}).server()];
  EXPECT_EQ(taken, (std::array<int, 3>{10, 10, 10}));
}

// Of four servers one is free, three are busy. Of the six pairs of two three hold the free one: it gets half
// of what comes. Neighbours alone would give it as much, but the busy ones' shares give them away: see the
// next test.
TEST_F(PoolTest, RandomTwoTakesTheLessBusyOfTwo) {
  auto& p = open(4, Balance::RandomTwo);
  std::vector<Lease> held;
  for (std::size_t server = 0; server < 3; ++server)
    held.push_back(p.lease({.tried = ~(std::uint64_t{1} << server)}));
  int free_one = 0;
  for (int i = 0; i < 20'000; ++i)
    if (p.lease({}).server() == 3) ++free_one;
  EXPECT_NEAR(free_one, 10'000, 600);
}

// Loads 0, 1, 2, 3: a pair yields the less busy, so with independent draws the shares are 3/6, 2/6, 1/6 and
// none. Drawn as neighbours on a ring (pairs 01, 12, 23, 30) they would be 2/4, 1/4, 1/4 and none.
TEST_F(PoolTest, RandomTwoDrawsTheTwoIndependently) {
  auto& p = open(4, Balance::RandomTwo);
  std::vector<Lease> held;
  for (std::size_t server = 0; server < 4; ++server)
    for (std::size_t i = 0; i < server; ++i)
      held.push_back(p.lease({.tried = ~(std::uint64_t{1} << server)}));
  std::array<int, 4> taken{};
  for (int i = 0; i < 60'000; ++i) ++taken[p.lease({}).server()];
  EXPECT_NEAR(taken[0], 30'000, 1'000);
  EXPECT_NEAR(taken[1], 20'000, 1'000);
  EXPECT_NEAR(taken[2], 10'000, 1'000);
  EXPECT_EQ(taken[3], 0);
}

TEST_F(PoolTest, RandomTwoOfEqualsIsEvenWhateverWasTried) {
  auto& p = open(5, Balance::RandomTwo);
  std::array<int, 5> taken{};
  for (int i = 0; i < 40'000; ++i) ++taken[p.lease({.tried = 0b00010}).server()];
  EXPECT_EQ(taken[1], 0);
  for (const std::size_t server : {0U, 2U, 3U, 4U}) EXPECT_NEAR(taken[server], 10'000, 600) << server;
}

TEST_F(PoolTest, WhatWasTriedIsPassedOverUntilNothingIsLeft) {
  for (const auto balance : {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo}) {
    auto& p = open(3, balance);
    std::uint64_t tried = 0;
    for (int i = 0; i < 3; ++i) {
      const auto lease = p.lease({.tried = tried});
      ASSERT_TRUE(lease);
      EXPECT_EQ(tried >> lease.server() & 1U, 0U);
      tried |= std::uint64_t{1} << lease.server();
    }
    EXPECT_FALSE(p.lease({.tried = tried}));
  }
  EXPECT_FALSE(open(1).lease({.tried = 1}));
  EXPECT_TRUE(open(1).lease({.tried = 0}));
}

TEST_F(PoolTest, SixtyFourServersAreAllReached) {
  for (const auto balance : {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo}) {
    auto& p = open(kMaxServers, balance);
    std::uint64_t tried = 0;
    for (std::size_t i = 0; i < kMaxServers; ++i)
      tried |= std::uint64_t{1} << p.lease({.tried = tried}).server();
    EXPECT_EQ(tried, ~std::uint64_t{0});
  }
}

TEST_F(PoolTest, AConnectionServesAgainOnlyIfItIsKept) {
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
    EXPECT_FALSE(p.lease({}).connected()) << "one connection is lent to two";
  }
  EXPECT_FALSE(p.lease({}).connected()) << "what was not kept came back";
}

TEST_F(PoolTest, AFreshLeaseLeavesTheWaitingOnesAlone) {
  auto& p = open(1);
  {
    auto lease = p.lease({});
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  EXPECT_FALSE(p.lease({.fresh = true}).connected());
  EXPECT_TRUE(p.lease({}).connected());
}

TEST_F(PoolTest, NoMoreAreKeptThanTheSettingsSay) {
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

TEST_F(PoolTest, AMovedLeaseGivesBackOnce) {
  auto& p = open(2);
  {
    auto one = p.lease({});
    const auto first = one.server();
    auto other = std::move(one);
    EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): what a lease that was moved from says is the test
    EXPECT_EQ(other.server(), first);
    EXPECT_NE(p.lease({}).server(), first) << "its place was given back by the move";
    other = p.lease({});
    EXPECT_NE(other.server(), first);
  }
  std::vector<Lease> held;
  std::array<int, 2> busy{};
  for (int i = 0; i < 10; ++i) held.push_back(p.lease({}));
  for (const auto& lease : held) ++busy[lease.server()];
  EXPECT_EQ(busy, (std::array<int, 2>{5, 5}));
}

TEST_F(PoolTest, AConnectionThatTheServerClosedOrSpokeOnIsStale) {
  for (const bool speaks : {false, true}) {
    auto& p = open(1);
    net::ErrorCode ec;
    auto lease = p.lease({});
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

TEST_F(PoolTest, AConnectThatIsRefusedSaysSo) {
  auto& p = open(1);
  listeners[0].reset();
  auto lease = p.lease({});
  EXPECT_EQ(connected(lease), net::asio::error::connection_refused);
  EXPECT_FALSE(lease.connected());
}

TEST_F(PoolTest, AServerThatFailedIsPassedOverUntilItsTimeIsOver) {
  auto& p = open(2, Balance::RoundRobin);
  fail(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  EXPECT_EQ(p.lease({.now = now, .tried = 0b10}).server(), 0U) << "better one that failed than none";
  now += settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now}).server(), 0U) << "the next request tries it";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 1U) << "one is enough";
  fleet->member(0).answered(now, now);
  now += settings.ejection.slow_start;
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2}));
}

TEST_F(PoolTest, AServerThatIsBackStartsWithATenth) {
  auto& p = open(2, Balance::RoundRobin);
  fail(0);
  fleet->member(0).answered(now, now);
  std::array<int, 2> taken{};
  for (int i = 0; i < 110; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_NEAR(taken[0], 10, 1);
}

TEST_F(PoolTest, WhereAllFailedAllAreTriedInTurn) {
  for (const auto balance :
       {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo, Balance::Hash}) {
    auto& p = open(2, balance);
    fail(0);
    fail(1);
    std::array<int, 2> taken{};
    for (std::uint64_t i = 0; i < 100; ++i)
      ++taken[p.lease({.now = now, .word = i * 0x9E3779B97F4A7C15ULL}).server()];
    EXPECT_GT(taken[0], 20);
    EXPECT_GT(taken[1], 20);
  }
}

TEST_F(PoolTest, WhatChangesIsReportedOnce) {
  auto& p = open(2);
  for (int i = 0; i < 3; ++i) fail(0);
  fleet->member(0).failed(now, now);
  for (int i = 0; i < 3; ++i) fleet->member(1).failed(now, now);
  for (int i = 0; i < 3; ++i) fleet->member(0).answered(now, now);
  const auto server = [&](std::size_t at) { return "upstream \"api\": server " + servers[at].name; };
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with(server(0) + " is out for ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" s: it cannot be reached")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(server(1) + " is out for ")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with(" s: its answers fail")) << lines[1];
  EXPECT_EQ(lines[2], server(0) + " is back");
  EXPECT_EQ(fleet->member(0).ejections(), 1U);
  EXPECT_EQ(p.size(), 2U);
}

TEST_F(PoolTest, AFullServerLeavesItToOthersUntilAllAreFull) {
  auto& p = open(2, Balance::RoundRobin);
  settings.servers[0].max_in_flight = 1;
  settings.servers[1].max_in_flight = 3;
  auto& q = reopen();
  EXPECT_EQ(&p, &q);
  std::vector<Lease> held;
  std::array<int, 2> busy{};
  for (int i = 0; i < 4; ++i) {
    held.push_back(q.lease({}));
    ASSERT_TRUE(held.back());
    EXPECT_FALSE(held.back().room_after());
    ++busy[held.back().server()];
  }
  EXPECT_EQ(busy, (std::array<int, 2>{1, 3}));
  EXPECT_FALSE(q.lease({}));
  EXPECT_TRUE(q.lease({}).room_after());
  EXPECT_FALSE(q.lease({.tried = 0b11}).room_after()) << "none is left, so room has nothing to do with it";
  held.pop_back();
  EXPECT_TRUE(q.lease({}));
}

TEST_F(PoolTest, TheBoundIsOfAllWorkersTogether) {
  open(1);
  settings.servers[0].max_in_flight = 2;
  auto& mine = reopen();
  Pool others(context.get_executor(), watchdog, *fleet);
  const auto one = mine.lease({});
  const auto two = others.lease({});
  EXPECT_TRUE(one);
  EXPECT_TRUE(two);
  EXPECT_FALSE(mine.lease({}));
  EXPECT_FALSE(others.lease({}));
}

// The bucket of a server is full at first; what it refuses goes to others, and the wait is exact.
TEST_F(PoolTest, ALimitedServerLeavesItToOthersUntilAllAreSpent) {
  open(2, Balance::RoundRobin);
  settings.servers[0].limit =
      limit::TokenBucket::make({.count = 2, .period = base::Duration{1'000'000}}, 2).value();
  settings.servers[1].limit =
      limit::TokenBucket::make({.count = 4, .period = base::Duration{1'000'000}}, 4).value();
  auto& p = reopen();
  std::array<int, 2> taken{};
  for (int i = 0; i < 6; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 4}));
  const auto none = p.lease({.now = now});
  EXPECT_FALSE(none);
  ASSERT_EQ(none.room_after(), base::Duration{250'000}) << "the faster one's next";
  now += base::Duration{249'999};
  EXPECT_FALSE(p.lease({.now = now}));
  now += base::Duration{1};
  EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  EXPECT_FALSE(p.lease({.now = now}));
}

TEST_F(PoolTest, WhoAsksToBeLeftAloneIsHeardOnce) {
  open(1);
  fleet->pause_until(now + base::Duration{5});
  fleet->pause_until(now + base::Duration{3});
  EXPECT_EQ(fleet->paused_until(), now + base::Duration{5});
}

TEST_F(PoolTest, WhoFailedOnceIsNotSentOnATrial) {
  auto& p = open(3, Balance::RoundRobin);
  fail(0);
  now += settings.ejection.least;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.lease({.now = now, .tried = 0b10}).server(), 2U);
  EXPECT_EQ(p.lease({.now = now}).server(), 0U);
}

// What hangs there holds its places: that a server is to be tried must not cost a request its answer.
TEST_F(PoolTest, AFullServerIsNotTried) {
  open(2, Balance::RoundRobin);
  settings.servers[0].max_in_flight = 1;
  auto& p = reopen();
  const auto hangs = p.lease({.now = now, .tried = 0b10});
  fail(0);
  now += settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now}).server(), 1U);
}

TEST_F(PoolTest, AClientStaysOnItsServerOnEveryWorker) {
  auto& p = open(5, Balance::Hash);
  Pool others(context.get_executor(), watchdog, *fleet);
  for (std::uint64_t word = 1; word < 200; ++word) {
    const auto home = p.lease({.word = word}).server();
    EXPECT_EQ(p.lease({.word = word}).server(), home);
    EXPECT_EQ(others.lease({.word = word}).server(), home);
  }
}

TEST_F(PoolTest, TriesAllAddressesOfAServer) {
  open(2);
  const auto dead = servers[0].addresses.front();
  listeners[0].reset();
  servers[0].addresses = {dead, servers[1].addresses.front()};
  pool.reset();
  auto& p = pool.emplace(context.get_executor(), watchdog, fleet.emplace(settings, servers));
  auto lease = p.lease({.tried = 0b10});
  EXPECT_FALSE(connected(lease));
  EXPECT_TRUE(lease.connected());
}

TEST_F(PoolTest, ConnectionsThatWaitTooLongAreClosed) {
  settings.timeouts.idle = 4 * Watchdog::kTick;
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
    EXPECT_TRUE(lease.reused()) << "it was used meanwhile";
    lease.keep();
  }
  auto theirs = accept(0);
  pass(5);
  EXPECT_FALSE(p.lease({}).reused());
  EXPECT_EQ(net::receive(theirs.native_handle()), "") << "it is still open";
}

// A name that stands for another machine: what waits there is closed, what is under way ends there.
TEST_F(PoolTest, ConnectionsLeadToWhereTheServerIs) {
  auto& p = open(2);
  const auto first = servers[0].addresses.front();
  const auto second = servers[1].addresses.front();
  auto waits = p.lease({.tried = 0b10});
  auto works = p.lease({.tried = 0b10});
  ASSERT_FALSE(connected(waits));
  ASSERT_FALSE(connected(works));
  waits.keep();
  waits = {};
  fleet->member(0).move_to({second}, now);
  EXPECT_TRUE(works.moved());
  EXPECT_TRUE(works.connected());
  works.keep();
  works = {};
  auto lease = p.lease({.tried = 0b10});
  EXPECT_FALSE(lease.connected()) << "both led to where it was";
  ASSERT_FALSE(connected(lease));
  EXPECT_FALSE(lease.moved());
  EXPECT_EQ(net::remote_endpoint(lease.stream().native_handle()), second);
  lease.keep();
  lease = {};
  fleet->member(0).move_to({first, second}, now);
  lease = p.lease({.tried = 0b10});
  EXPECT_TRUE(lease.reused()) << "an address that stays keeps its connections";
  fleet->member(0).move_to({second, first}, now);
  lease.keep();
  lease = {};
  EXPECT_TRUE(p.lease({.tried = 0b10}).reused());
}

TEST_F(PoolTest, WhatWaitsWhereAServerWasIsClosedSoon) {
  auto& p = open(1);
  {
    auto lease = p.lease({});
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  auto theirs = accept(0);
  open_elsewhere();
  pass(2);
  EXPECT_EQ(net::receive(theirs.native_handle()), "") << "it is still open";
}

TEST_F(PoolTest, AServerThatMovedIsKnownToAllItsFleets) {
  open(1);
  const auto before = fleet->servers();
  Fleet newer(settings, servers, {}, &*fleet);
  open_elsewhere();
  EXPECT_EQ(newer.servers(), fleet->servers());
  EXPECT_NE(newer.servers(), before);
}

TEST(ResolveServers, AnErrorNamesUpstreamAndServer) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.servers = {{.address = {.host = "no such host", .port = 1, .unix_path = {}}}};
  const auto servers = resolve_servers(settings);
  ASSERT_FALSE(servers);
  EXPECT_TRUE(servers.error().message.starts_with("upstream \"api\": cannot resolve \"no such host\": "));
}

}  // namespace
}  // namespace weir::upstream
