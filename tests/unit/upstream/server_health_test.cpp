#include "weir/upstream/server_health.hpp"

#include "unit/upstream/start.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using Change = ServerHealth::Change;
using namespace std::chrono_literals;

constexpr Ejection kSettings{.failures = 3, .least = 1s, .most = 8s, .slow_start = 10s};
constexpr std::uint64_t kWhole = 0;  // this random number does not shorten ejection times

base::Duration out_for(const ServerHealth& server_health, base::TimePoint now) {
  return server_health.ejected_until() - now;
}

TEST(ServerHealth, OneFailedConnectEjectsTheServer) {
  ServerHealth server_health;
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint{});
  EXPECT_EQ(server_health.unreachable(kSettings, kStart, kWhole), Change::Out);
  EXPECT_EQ(out_for(server_health, kStart), 1s);
  EXPECT_EQ(server_health.ejections(), 1U);
}

TEST(ServerHealth, ConsecutiveFailuresEjectTheServer) {
  ServerHealth server_health;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(server_health.failed(kSettings, kStart, kStart, kWhole), Change::None);
    EXPECT_EQ(server_health.failed(kSettings, kStart, kStart, kWhole), Change::None);
    EXPECT_TRUE(server_health.suspect());
    EXPECT_EQ(server_health.answered(kStart, kStart), Change::None);
    EXPECT_FALSE(server_health.suspect());
  }
  server_health.failed(kSettings, kStart, kStart, kWhole);
  server_health.failed(kSettings, kStart, kStart, kWhole);
  EXPECT_EQ(server_health.failed(kSettings, kStart, kStart, kWhole), Change::Out);
}

// If a hundred requests fail together, they are treated as one failure of the server.
TEST(ServerHealth, FailuresOfRequestsSentBeforeAnEjectionDoNotExtendIt) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  const auto until = server_health.ejected_until();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(server_health.failed(kSettings, kStart + 500ms, kStart + 500ms, kWhole), Change::None);
    EXPECT_EQ(server_health.unreachable(kSettings, kStart + 500ms, kWhole), Change::None);
  }
  EXPECT_EQ(server_health.ejected_until(), until);
}

// If all servers are ejected, all of them get requests. These requests are no trials, but their failures
// count after the ejection time.
TEST(ServerHealth, FailureAfterTheEjectionTimeEjectsTheServerAgain) {
  for (const bool reached : {false, true}) {
    ServerHealth server_health;
    const auto fail = [&](base::TimePoint now) {
      return reached ? server_health.failed(kSettings, now, now, kWhole)
                     : server_health.unreachable(kSettings, now, kWhole);
    };
    for (unsigned i = 1; i < kSettings.failures && reached; ++i) EXPECT_EQ(fail(kStart), Change::None);
    EXPECT_EQ(fail(kStart), Change::Out);
    EXPECT_EQ(fail(kStart + 1s - 1us), Change::None);
    EXPECT_EQ(fail(kStart + 1s), Change::OutAgain);
    EXPECT_EQ(out_for(server_health, kStart + 1s), 2s);
    EXPECT_EQ(server_health.failed(kSettings, kStart + 3s - 1us, kStart + 4s, kWhole), Change::None)
        << "the request was sent before the readmission";
    EXPECT_EQ(fail(kStart + 4s), Change::OutAgain);
    EXPECT_EQ(server_health.ejections(), 3U);
    EXPECT_EQ(server_health.answered(kStart + 5s, kStart + 5s), Change::Back);
  }
}

TEST(ServerHealth, RequestWithACompleteBodyMayTryAServerThatARequestWithAnIncompleteBodyIsTrying) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  const auto due = kStart + 1s;
  EXPECT_FALSE(server_health.begin_trial(kSettings, due - 1us, true));
  EXPECT_TRUE(server_health.begin_trial(kSettings, due, true));
  EXPECT_FALSE(server_health.begin_trial(kSettings, due + 999'999us, true))
      << "another request with an incomplete body may not try the server";
  EXPECT_TRUE(server_health.begin_trial(kSettings, due + 1s, true));
  EXPECT_TRUE(server_health.begin_trial(kSettings, due + 1s))
      << "a request with a complete body may try the server as well";
  EXPECT_EQ(out_for(server_health, due + 1s), 1s);
  EXPECT_FALSE(server_health.begin_trial(kSettings, due + 1'999'999us, true))
      << "another request is trying the server";
  EXPECT_EQ(server_health.unreachable(kSettings, due + 1s, kWhole), Change::OutAgain);
  EXPECT_EQ(out_for(server_health, due + 1s), 2s);
}

TEST(ServerHealth, TrialByARequestWithAnIncompleteBodyCanEjectOrReadmitTheServer) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  ASSERT_TRUE(server_health.begin_trial(kSettings, kStart + 1s, true));
  EXPECT_EQ(server_health.failed(kSettings, kStart + 1s, kStart + 1500ms, kWhole), Change::OutAgain);
  EXPECT_EQ(out_for(server_health, kStart + 1500ms), 2s);
  ASSERT_TRUE(server_health.begin_trial(kSettings, kStart + 3500ms, true));
  EXPECT_EQ(server_health.answered(kStart + 3500ms, kStart + 3600ms), Change::Back);
}

TEST(ServerHealth, OneRequestMayTryTheServerWhenTheEjectionTimeIsOver) {
  ServerHealth server_health;
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart)) << "the server is not ejected";
  server_health.unreachable(kSettings, kStart, kWhole);
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart + 999'999us));
  EXPECT_TRUE(server_health.begin_trial(kSettings, kStart + 1s));
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart + 1s)) << "another request is trying the server";
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart + 1'999'999us));
  EXPECT_TRUE(server_health.begin_trial(kSettings, kStart + 2s)) << "the result of the trial is unknown";
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart + 3'999'999us))
      << "an unresponsive server is tried ever less often";
  EXPECT_TRUE(server_health.begin_trial(kSettings, kStart + 4s));
  EXPECT_EQ(server_health.ejected_until(), kStart + 8s);
}

TEST(ServerHealth, EjectionTimeDoublesUpToItsBound) {
  ServerHealth server_health;
  auto now = kStart;
  server_health.unreachable(kSettings, now, kWhole);
  for (const auto expected : {1s, 2s, 4s, 8s, 8s}) {
    EXPECT_EQ(out_for(server_health, now), expected);
    now = server_health.ejected_until();
    ASSERT_TRUE(server_health.begin_trial(kSettings, now));
    EXPECT_EQ(server_health.failed(kSettings, now, now, kWhole), Change::OutAgain);
  }
  EXPECT_EQ(server_health.ejections(), 6U) << "the first failure, and each failed trial";
}

TEST(ServerHealth, ResponseReadmitsAnEjectedServer) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  ASSERT_TRUE(server_health.begin_trial(kSettings, kStart + 1s));
  EXPECT_EQ(server_health.answered(kStart + 1s, kStart + 1s), Change::Back);
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint{});
  EXPECT_EQ(server_health.readmitted_at(), kStart + 1s);
  EXPECT_FALSE(server_health.suspect());
}

TEST(ServerHealth, ServerThatFailsAgainSoonIsEjectedForLonger) {
  for (const auto& [later, expected] :
       {std::pair<base::Duration, base::Duration>{7'999'999us, 2s}, {8s, 1s}}) {
    ServerHealth server_health;
    server_health.unreachable(kSettings, kStart, kWhole);
    server_health.answered(kStart, kStart);
    server_health.unreachable(kSettings, kStart + later, kWhole);
    EXPECT_EQ(out_for(server_health, kStart + later), expected);
    EXPECT_EQ(server_health.ejections(), 2U);
  }
}

TEST(ServerHealth, EjectionTimeIsRandomlyShortenedByAtMostHalf) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  base::Duration least = 1h;
  base::Duration most{0};
  for (int i = 0; i < 10'000; ++i) {
    ServerHealth server_health;
    server_health.unreachable(kSettings, kStart, random());
    least = std::min(least, out_for(server_health, kStart));
    most = std::max(most, out_for(server_health, kStart));
  }
  EXPECT_GE(least, 500ms);
  EXPECT_LE(least, 510ms);
  EXPECT_GE(most, 990ms);
  EXPECT_LE(most, 1s);
}

const HealthCheck kCheck{.path = "/", .unhealthy_after = 3, .healthy_after = 2};

TEST(ServerHealth, ConsecutiveProbeResultsMarkAServerDownOrUp) {
  ServerHealth server_health;
  for (const bool good : {false, false, true, false, false})
    EXPECT_EQ(server_health.probed(kCheck, good, kStart), Change::None);
  EXPECT_EQ(server_health.probed(kCheck, false, kStart), Change::Down);
  EXPECT_EQ(server_health.probed(kCheck, false, kStart), Change::StillDown);
  EXPECT_EQ(server_health.probed(kCheck, true, kStart), Change::None);
  EXPECT_EQ(server_health.probed(kCheck, false, kStart), Change::StillDown);
  EXPECT_EQ(server_health.ejections(), 1U);
  EXPECT_EQ(server_health.probed(kCheck, true, kStart), Change::None);
  EXPECT_EQ(server_health.probed(kCheck, true, kStart + 1s), Change::Back);
  EXPECT_EQ(server_health.readmitted_at(), kStart + 1s);
}

TEST(ServerHealth, ServerMarkedDownByProbesIsReadmittedOnlyByProbes) {
  ServerHealth server_health;
  for (int i = 0; i < 3; ++i) server_health.probed(kCheck, false, kStart);
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart + 1h));
  EXPECT_EQ(server_health.answered(kStart, kStart), Change::None);
  EXPECT_EQ(server_health.unreachable(kSettings, kStart, kWhole), Change::None);
  EXPECT_NE(server_health.ejected_until(), base::TimePoint{});
  EXPECT_FALSE(server_health.suspect()) << "the response to a request changed nothing";
}

// Only successful probes after the ejection may readmit the server.
TEST(ServerHealth, ProbesReadmitAServerThatWasEjectedForFailedRequests) {
  ServerHealth server_health;
  for (int i = 0; i < 5; ++i) server_health.probed(kCheck, true, kStart);
  server_health.unreachable(kSettings, kStart, kWhole);
  EXPECT_EQ(server_health.probed(kCheck, true, kStart + 100ms), Change::None);
  EXPECT_EQ(server_health.probed(kCheck, true, kStart + 200ms), Change::Back);
}

// If weir cannot connect to a server, no request is lost: weir sends the request to another server. But a
// server that accepts a non-retryable request and stays silent loses it. So weir does not send such requests
// to a silent server until `most` after its ejection ends.
TEST(ServerHealth, NonRetryableRequestsTryAnUnresponsiveServerLaterThanOthers) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), kStart + 1s);
  server_health.answered(kStart, kStart);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), base::TimePoint{}) << "the server is not ejected";
  auto now = kStart + kSettings.most;
  for (int i = 0; i < 3; ++i) server_health.failed(kSettings, now, now, kWhole);
  EXPECT_EQ(server_health.ejected_until(), now + 1s);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), now + 1s + 8s);
  now += 1s;
  ASSERT_TRUE(server_health.begin_trial(kSettings, now));
  EXPECT_EQ(server_health.open_to_all_from(kSettings), now + 1s + 8s)
      << "other requests still try the server";
  EXPECT_EQ(server_health.unreachable(kSettings, now, kWhole), Change::OutAgain);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), server_health.ejected_until())
      << "the server refuses connections";
  server_health.moved(false, now);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), now);
  for (int i = 0; i < 3; ++i) server_health.probed(kCheck, false, now);
  EXPECT_EQ(server_health.open_to_all_from(kSettings), base::TimePoint::max()) << "the server is marked down";
}

// An ejection must last at most `most`, whatever events occur. After that time a request may try the server.
TEST(ServerHealth, EjectionNeverLastsLongerThanItsBound) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  ServerHealth server_health;
  auto now = kStart;
  for (int i = 0; i < 100'000; ++i) {
    now += base::Duration{static_cast<base::Duration::rep>(random() % 1'000'000)};
    switch (random() % 4) {
      case 0:
        server_health.unreachable(kSettings, now, random());
        break;
      case 1:
        server_health.failed(kSettings, now, now, random());
        break;
      case 2:
        server_health.answered(now, now);
        EXPECT_EQ(server_health.ejected_until(), base::TimePoint{});
        break;
      default:
        (void)server_health.begin_trial(kSettings, now);
    }
    ASSERT_LE(server_health.ejected_until(), now + kSettings.most);
    if (server_health.ejected_until() == base::TimePoint{}) continue;
    auto later = server_health;
    ASSERT_TRUE(later.begin_trial(kSettings, later.ejected_until()));
    ASSERT_LE(server_health.open_to_all_from(kSettings), now + 2 * kSettings.most)
        << "a POST may try the server, too";
  }
}

TEST(WeightAt, WeightGrowsFromATenthToTheFullWeightDuringSlowStart) {
  EXPECT_EQ(weight_at(10, 10s, {}, kStart), 2'560U) << "the server was never ejected";
  EXPECT_EQ(weight_at(10, 10s, kStart, kStart), 256U);
  EXPECT_EQ(weight_at(10, 10s, kStart, kStart + 500ms), 256U);
  EXPECT_EQ(weight_at(10, 10s, kStart, kStart + 5s), 1'280U);
  EXPECT_EQ(weight_at(10, 10s, kStart, kStart + 10s), 2'560U);
  EXPECT_EQ(weight_at(10, 0s, kStart, kStart), 2'560U) << "slow start is disabled";
  EXPECT_EQ(weight_at(1, 10s, kStart, kStart - 1s), 25U) << "another worker's clock is behind";
}

TEST(ServerHealth, ResponsesToRequestsSentBeforeAnEjectionDoNotReadmitTheServer) {
  ServerHealth server_health;
  const auto out = kStart + 10s;
  EXPECT_EQ(server_health.unreachable(kSettings, out, kWhole), Change::Out);
  EXPECT_EQ(server_health.answered(out - 1s, out + 1ms), Change::None) << "the response to an older request";
  const auto trial = server_health.ejected_until();
  ASSERT_TRUE(server_health.begin_trial(kSettings, trial));
  const auto until = server_health.ejected_until();
  EXPECT_EQ(server_health.failed(kSettings, trial - 1us, trial + 1ms, kWhole), Change::None);
  EXPECT_EQ(server_health.ejected_until(), until) << "the failure of an older request extended the ejection";
  EXPECT_EQ(server_health.answered(trial, trial + 2ms), Change::Back);
}

TEST(ServerHealth, ServerWithoutAnAddressIsDownUntilAnAddressIsFound) {
  const base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  ServerHealth server_health;
  EXPECT_EQ(server_health.absent(), ServerHealth::Change::Down);
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint::max());
  EXPECT_EQ(server_health.unreachable({}, now, 0), ServerHealth::Change::None);
  EXPECT_EQ(server_health.answered(now, now), ServerHealth::Change::None);
  EXPECT_FALSE(server_health.begin_trial({}, now));
  EXPECT_EQ(server_health.ejections(), 0U) << "no failure ejected the server";
  EXPECT_EQ(server_health.moved(true, now), ServerHealth::Change::Back);
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint{});
}

TEST(ServerHealth, ServerWithOnlyNewAddressesIsReadmittedAtOnceWithSlowStart) {
  ServerHealth server_health;
  server_health.unreachable(kSettings, kStart, kWhole);
  server_health.unreachable(kSettings, kStart + 500ms, kWhole);
  EXPECT_EQ(server_health.moved(true, kStart + 1s), Change::Back);
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint{});
  EXPECT_EQ(server_health.readmitted_at(), kStart + 1s);
  EXPECT_EQ(server_health.ejections(), 1U) << "a new address does not reset the number of ejections";
  EXPECT_EQ(server_health.unreachable(kSettings, kStart + 2s, kWhole), Change::Out);
  EXPECT_EQ(out_for(server_health, kStart + 2s), 1s) << "the failures of the former address are forgotten";
  EXPECT_EQ(ServerHealth{}.moved(true, kStart), Change::None) << "the server was not ejected";
}

TEST(ServerHealth, EjectedServerMayBeTriedAtOnceWhenItGetsANewAddress) {
  ServerHealth server_health;
  EXPECT_EQ(server_health.moved(false, kStart), Change::None);
  EXPECT_EQ(server_health.ejected_until(), base::TimePoint{}) << "the server is not ejected";
  server_health.unreachable(kSettings, kStart, kWhole);
  EXPECT_EQ(server_health.moved(false, kStart + 100ms), Change::None);
  EXPECT_TRUE(server_health.begin_trial(kSettings, kStart + 100ms));
  EXPECT_EQ(server_health.answered(kStart + 100ms, kStart + 100ms), Change::Back);
}

TEST(ServerHealth, ServerMarkedDownByProbesStaysDownIfOnlySomeAddressesChange) {
  const HealthCheck check{.path = "/", .unhealthy_after = 1, .healthy_after = 1};
  ServerHealth server_health;
  ASSERT_EQ(server_health.probed(check, false, kStart), Change::Down);
  EXPECT_EQ(server_health.moved(false, kStart), Change::None);
  EXPECT_FALSE(server_health.begin_trial(kSettings, kStart));
  EXPECT_EQ(server_health.moved(true, kStart), Change::Back) << "the failed probes were of another machine";
}

}  // namespace
}  // namespace weir::upstream
