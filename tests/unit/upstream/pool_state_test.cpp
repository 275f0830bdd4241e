#include "unit/upstream/pool_stage.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

TEST_F(PoolTest, EjectedServerIsNotChosenUntilItsEjectionTimeIsOver) {
  auto& p = open(2, Balance::RoundRobin);
  fail(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  EXPECT_EQ(p.lease({.now = now, .tried = 0b10}).server(), 0U) << "a server that failed is better than none";
  now += settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now}).server(), 0U) << "the next request tries the server";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 1U) << "one trial at a time";
  server_group->member(0).answered(now, now);
  now += settings.ejection.slow_start;
  std::array<int, 2> taken{};
  for (int i = 0; i < 4; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 2}));
}

TEST_F(PoolTest, ReadmittedServerStartsWithATenthOfItsWeight) {
  auto& p = open(2, Balance::RoundRobin);
  fail(0);
  server_group->member(0).answered(now, now);
  std::array<int, 2> taken{};
  for (int i = 0; i < 110; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_NEAR(taken[0], 10, 1);
}

TEST_F(PoolTest, AllServersAreTriedInTurnIfAllHaveFailed) {
  for (const auto balance :
       {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo, Balance::Hash}) {
    auto& p = open(2, balance);
    fail(0);
    fail(1);
    std::array<int, 2> taken{};
    for (std::uint64_t i = 0; i < 100; ++i)
      ++taken[p.lease({.now = now, .client_hash = i * 0x9E3779B97F4A7C15ULL}).server()];
    EXPECT_GT(taken[0], 20);
    EXPECT_GT(taken[1], 20);
  }
}

TEST_F(PoolTest, ReportsEachEjectionAndReadmissionOnce) {
  auto& p = open(2);
  for (int i = 0; i < 3; ++i) fail(0);
  server_group->member(0).failed(now, now);
  for (int i = 0; i < 3; ++i) server_group->member(1).failed(now, now);
  for (int i = 0; i < 3; ++i) server_group->member(0).answered(now, now);
  const auto server = [&](std::size_t at) { return "upstream \"api\": server " + servers[at].name; };
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with(server(0) + " is ejected for ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" s: no connection")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(server(1) + " is ejected for ")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with(" s: too many failed responses")) << lines[1];
  EXPECT_EQ(lines[2], server(0) + " is back");
  EXPECT_EQ(server_group->member(0).ejections(), 1U);
  EXPECT_EQ(p.size(), 2U);
}

TEST_F(PoolTest, LeaseGetsAServerUnlessAllServersAreAtTheirMaxInFlight) {
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
  EXPECT_FALSE(q.lease({.tried = 0b11}).room_after()) << "all servers were tried, so waiting does not help";
  held.pop_back();
  EXPECT_TRUE(q.lease({}));
}

TEST_F(PoolTest, MaxInFlightAppliesToAllWorkersTogether) {
  open(1);
  settings.servers[0].max_in_flight = 2;
  auto& mine = reopen();
  Pool others(context.get_executor(), watchdog, *server_group);
  const auto one = mine.lease({});
  const auto two = others.lease({});
  EXPECT_TRUE(one);
  EXPECT_TRUE(two);
  EXPECT_FALSE(mine.lease({}));
  EXPECT_FALSE(others.lease({}));
}

// A server's token bucket is full at first. Requests above its limit go to other servers. The reported wait
// must be exact.
TEST_F(PoolTest, LeaseGetsAServerUnlessAllServersAreAtTheirRateLimits) {
  open(2, Balance::RoundRobin);
  settings.servers[0].limit =
      limit::TokenBucket::make({.count = 2, .period = base::Duration{1'000'000}}, 2).value();
  settings.servers[1].limit =
      limit::TokenBucket::make({.count = 4, .period = base::Duration{1'000'000}}, 4).value();
  auto& p = reopen();
  std::array<int, 2> taken{};
  for (int i = 0; i < 6; ++i) ++taken[p.lease({.now = now}).server()];
  EXPECT_EQ(taken, (std::array<int, 2>{2, 4}));
  EXPECT_FALSE(p.others_serve(0, now)) << "a response is kept if no other server can answer";
  EXPECT_TRUE(p.others_serve(0, now + base::Duration{250'000}));
  EXPECT_FALSE(p.others_serve(0b10, now + base::Duration{250'000}))
      << "the other server's next unit comes later";
  const auto none = p.lease({.now = now});
  EXPECT_FALSE(none);
  ASSERT_EQ(none.room_after(), base::Duration{250'000}) << "the next unit of the faster server";
  now += base::Duration{249'999};
  EXPECT_FALSE(p.lease({.now = now}));
  now += base::Duration{1};
  EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  EXPECT_FALSE(p.lease({.now = now}));
}

TEST_F(PoolTest, ReloadOfLimitsAndWeightsKeepsEjectionsAndSlowStart) {
  open(3);
  fail(0);
  fail(1);
  server_group->member(1).answered(now, now);
  for (auto& server : settings.servers) {
    server.limit = limit::TokenBucket::make({.count = 5, .period = base::Duration{1'000'000}}, 5).value();
    server.max_in_flight = 9;
    server.weight = 10;
  }
  ServerGroup newer(settings, servers, {}, &*server_group);
  EXPECT_FALSE(newer.member(0).serves());
  EXPECT_EQ(newer.member(0).ejections(), 1U);
  EXPECT_EQ(newer.member(1).weight(now), kFullWeight) << "a tenth of the new weight";
  EXPECT_EQ(newer.member(2).weight(now), 10 * kFullWeight);
  newer.member(0).answered(now, now);
  EXPECT_TRUE(server_group->member(0).serves()) << "requests that began before the reload";
}

TEST_F(PoolTest, ServerWhoseLimitAReloadChangesStartsWithItsFullLimit) {
  open(1);
  const auto set = [&](std::uint32_t count) {
    settings.servers[0].limit =
        limit::TokenBucket::make({.count = count, .period = base::Duration{1'000'000}}, count).value();
  };
  set(1);
  reopen();
  EXPECT_FALSE(server_group->member(0).enter(now));
  ServerGroup same(settings, servers, {}, &*server_group);
  EXPECT_TRUE(same.member(0).enter(now)) << "the unit is used";
  set(2);
  ServerGroup other(settings, servers, {}, &same);
  EXPECT_FALSE(other.member(0).enter(now));
  EXPECT_FALSE(other.member(0).enter(now));
  EXPECT_TRUE(other.member(0).enter(now));
}

TEST_F(PoolTest, MaxInFlightThatAReloadAddsCountsOnlyRequestsThatBeginLater) {
  open(1);
  EXPECT_FALSE(server_group->member(0).enter(now));
  settings.servers[0].max_in_flight = 1;
  ServerGroup newer(settings, servers, {}, &*server_group);
  EXPECT_FALSE(newer.member(0).enter(now));
  server_group->member(0).leave();
  EXPECT_FALSE(newer.member(0).has_room())
      << "the request of before was not counted, and so is not subtracted";
  newer.member(0).leave();
  EXPECT_TRUE(newer.member(0).has_room());
}

TEST_F(PoolTest, LaterRetryAfterNeverShortensThePauseOfAnUpstream) {
  open(1);
  server_group->pause_until(now + base::Duration{5});
  server_group->pause_until(now + base::Duration{3});
  EXPECT_EQ(server_group->paused_until(), now + base::Duration{5});
}

TEST_F(PoolTest, RequestThatIsRetriedDoesNotTryAnEjectedServer) {
  auto& p = open(3, Balance::RoundRobin);
  fail(0);
  now += settings.ejection.least;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.lease({.now = now, .tried = 0b10}).server(), 2U);
  EXPECT_EQ(p.lease({.now = now}).server(), 0U);
}

// A client whose POST is sent to a silent server gets no answer, although other servers could have answered.
TEST_F(PoolTest, NonRetryableRequestsAreNotUsedToTryAnUnresponsiveServer) {
  auto& p = open(2, Balance::RoundRobin);
  for (unsigned i = 0; i < settings.ejection.failures; ++i) server_group->member(0).failed(now, now);
  now += settings.ejection.least;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now, .once = true}).server(), 1U);
  EXPECT_EQ(p.lease({.now = now}).server(), 0U);
  now += settings.ejection.most + settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now, .once = true}).server(), 0U)
      << "if only such requests come, one of them tries the server";
  EXPECT_EQ(p.lease({.now = now, .once = true}).server(), 1U);
}

TEST_F(PoolTest, NonRetryableRequestsMayTryAnUnreachableServer) {
  auto& p = open(2, Balance::RoundRobin);
  fail(0);
  now += settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now, .once = true}).server(), 0U);
}

TEST_F(PoolTest, RequestsDoNotTryAnEjectedServerIfThereAreHealthChecks) {
  open(2, Balance::RoundRobin);
  settings.health = HealthCheck{.path = "/"};
  auto& p = reopen();
  fail(0);
  now += settings.ejection.most;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.lease({.now = now}).server(), 1U);
  EXPECT_EQ(p.lease({.now = now, .tried = 0b10}).server(), 0U) << "a server that failed is better than none";
  for (unsigned i = 0; i < settings.health->healthy_after; ++i) server_group->member(0).probed(true, {}, now);
  now += settings.ejection.slow_start;
  EXPECT_NE(p.lease({.now = now}).server(), p.lease({.now = now}).server());
}

// Requests without an answer use up the server's `max_in_flight`. A trial request to this server would be
// lost.
TEST_F(PoolTest, EjectedServerAtItsMaxInFlightIsNotTried) {
  open(2, Balance::RoundRobin);
  settings.servers[0].max_in_flight = 1;
  auto& p = reopen();
  const auto hangs = p.lease({.now = now, .tried = 0b10});
  fail(0);
  now += settings.ejection.least;
  EXPECT_EQ(p.lease({.now = now}).server(), 1U);
}

}  // namespace
}  // namespace weir::upstream
