#include "unit/upstream/pool_stage.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

TEST_F(PoolTest, RoundRobinChoosesServersInTurn) {
  auto& p = open(3, Balance::RoundRobin);
  std::vector<std::size_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(p.lease({}).server());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST_F(PoolTest, RoundRobinSharesEvenlyAmongServersThatWereNotTried) {
  auto& p = open(4, Balance::RoundRobin);
  std::array<int, 4> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease({.tried = 0b0010}).server()];
  EXPECT_EQ(taken, (std::array<int, 4>{10, 0, 10, 10}));
}

TEST_F(PoolTest, DrainedServerIsNeverChosen) {
  for (const auto balance :
       {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo, Balance::Hash}) {
    auto& p = open(3, balance);
    server_group->member(1).control()->set_drained(true);
    for (std::uint64_t word = 0; word < 200; ++word)
      EXPECT_NE(p.lease({.client_hash = word << 40U}).server(), 1U);
    EXPECT_FALSE(p.lease({.tried = 0b101})) << "a request that has failed elsewhere";
    EXPECT_FALSE(p.others_serve(0b101, now));
    fail(0);
    fail(2);
    EXPECT_TRUE(p.lease({.now = now})) << "an ejected server is better than a drained one";
    EXPECT_NE(p.lease({.now = now}).server(), 1U);
    server_group->member(1).control()->set_drained(false);
    EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  }
}

TEST_F(PoolTest, UpstreamWhoseServersAreAllDrainedHasNoServer) {
  for (const std::size_t count : {1U, 3U}) {
    auto& p = open(count);
    for (std::size_t at = 0; at < count; ++at) {
      EXPECT_FALSE(server_group->is_drained());
      server_group->member(at).control()->set_drained(true);
    }
    EXPECT_TRUE(server_group->is_drained());
    const auto lease = p.lease({});
    EXPECT_FALSE(lease);
    EXPECT_FALSE(lease.room_after()) << "waiting does not help";
  }
}

TEST_F(PoolTest, WeightThatAnOperatorSetsAppliesToTheNextRequest) {
  auto& p = open(2, Balance::RoundRobin);
  const auto& member = server_group->member(0);
  member.control()->set_weight(member.settings().weight, 4);
  std::array<int, 2> taken{};
  for (int i = 0; i < 20; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{16, 4}));
}

TEST_F(PoolTest, ReloadKeepsDrainAndWeightThatOperatorsSet) {
  auto& p = open(2);
  const auto held = p.lease({.tried = 0b10});
  server_group->member(0).control()->set_drained(true);
  server_group->member(1).control()->set_weight(1, 7);
  std::swap(settings.servers[0], settings.servers[1]);
  settings.servers[0].weight = 2;
  ServerGroup newer(settings, resolve_servers(settings).value(), {}, &*server_group);
  EXPECT_TRUE(newer.member(1).control()->is_drained());
  EXPECT_EQ(newer.member(1).control()->in_flight(), 1U) << "the request of the older group";
  EXPECT_EQ(newer.member(0).full_weight(), 2U) << "the configured weight is another one";
  EXPECT_EQ(server_group->member(1).full_weight(), 7U) << "the reload may still be refused";
  newer.member(0).control()->settle_weight(2);
  EXPECT_EQ(server_group->member(1).full_weight(), 1U);
}

TEST_F(PoolTest, LeastInFlightChoosesTheLeastBusyServer) {
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

TEST_F(PoolTest, LeastInFlightChoosesEquallyBusyServersInTurn) {
  auto& p = open(3);
  std::array<int, 3> taken{};
  for (int i = 0; i < 30; ++i) ++taken[p.lease({}).server()];
  EXPECT_EQ(taken, (std::array<int, 3>{10, 10, 10}));
}

// One of four servers is free, and three are busy. Three of the six pairs contain the free server, so it gets
// half of the requests. A pool that draws only neighbouring servers would pass this test, but fail the next
// test.
TEST_F(PoolTest, RandomTwoChoosesTheLessBusyOfTwoServers) {
  auto& p = open(4, Balance::RandomTwo);
  std::vector<Lease> held;
  for (std::size_t server = 0; server < 3; ++server)
    held.push_back(p.lease({.tried = ~(std::uint64_t{1} << server)}));
  int free_one = 0;
  for (int i = 0; i < 20'000; ++i)
    if (p.lease({}).server() == 3) ++free_one;
  EXPECT_NEAR(free_one, 10'000, 600);
}

// The four servers have the loads 0, 1, 2 and 3, and the less busy server of each pair is chosen. With
// independent draws, the shares of the servers are 3/6, 2/6, 1/6 and 0. If the pool drew only neighbours
// (pairs 01, 12, 23, 30), the shares would be 2/4, 1/4, 1/4 and 0.
TEST_F(PoolTest, RandomTwoDrawsBothServersIndependently) {
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

TEST_F(PoolTest, RandomTwoSharesEvenlyAmongServersThatWereNotTried) {
  auto& p = open(5, Balance::RandomTwo);
  std::array<int, 5> taken{};
  for (int i = 0; i < 40'000; ++i) ++taken[p.lease({.tried = 0b00010}).server()];
  EXPECT_EQ(taken[1], 0);
  for (const std::size_t server : {0U, 2U, 3U, 4U}) EXPECT_NEAR(taken[server], 10'000, 600) << server;
}

TEST_F(PoolTest, ServerThatWasTriedForARequestIsNotChosenAgain) {
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

TEST_F(PoolTest, ServersOfALaterPriorityAreChosenOnlyIfNoEarlierServerServes) {
  open(3, Balance::RoundRobin);
  settings.servers[0].priority = 20;
  settings.servers[1].priority = settings.servers[2].priority = 10;
  auto& p = reopen();
  const auto chosen = [&](std::uint64_t tried = 0) { return p.lease({.now = now, .tried = tried}).server(); };
  for (const std::size_t server : {1U, 2U, 1U, 2U}) EXPECT_EQ(chosen(), server);
  EXPECT_EQ(chosen(0b100), 1U);
  EXPECT_EQ(chosen(0b110), 0U) << "a request that failed at the others";
  fail(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen(), 2U);
  fail(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen(), 0U);
  now += settings.ejection.least;
  EXPECT_EQ(chosen(), 1U) << "the next request tries a server of the first priority";
  server_group->member(1).answered(now, now);
  EXPECT_EQ(chosen(), 2U) << "and the other one";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen(), 1U);
}

TEST_F(PoolTest, EjectedServerOfALaterPriorityIsNotTriedWhileAnEarlierServerServes) {
  open(2, Balance::RoundRobin);
  settings.servers[1].priority = 1;
  auto& p = reopen();
  fail(1);
  now += 2 * settings.ejection.most;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 0U);
  fail(0);
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2})) << "if no server serves, all are tried";
}

TEST_F(PoolTest, EachOf64ServersIsChosen) {
  for (const auto balance : {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo}) {
    auto& p = open(kMaxServers, balance);
    std::uint64_t tried = 0;
    for (std::size_t i = 0; i < kMaxServers; ++i)
      tried |= std::uint64_t{1} << p.lease({.tried = tried}).server();
    EXPECT_EQ(tried, ~std::uint64_t{0});
  }
}

TEST_F(PoolTest, HashBalanceSendsAClientToTheSameServerOnEveryWorker) {
  auto& p = open(5, Balance::Hash);
  Pool others(context.get_executor(), watchdog, *server_group);
  for (std::uint64_t word = 1; word < 200; ++word) {
    const auto home = p.lease({.client_hash = word}).server();
    EXPECT_EQ(p.lease({.client_hash = word}).server(), home);
    EXPECT_EQ(others.lease({.client_hash = word}).server(), home);
  }
}

}  // namespace
}  // namespace weir::upstream
