// Tests the state of a server that all workers share, with several threads at once. ThreadSanitizer checks it
// too.
#include "unit/upstream/start.hpp"

#include "weir/upstream/pool.hpp"

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 20'000;

template <class Work>
void together(Work work) {
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back([&work, number] { work(number); });
  for (auto& thread : threads) thread.join();
}

UpstreamSettings settings_of(ServerSettings server) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.servers = {std::move(server)};
  return settings;
}

// Returns a server with an address, because a server without an address is down.
Server server(const char* name) {
  return {name, net::resolve({.host = "127.0.0.1", .port = 1, .unix_path = {}}).value()};
}

TEST(ServerGroupThreads, MaxInFlightIsNeverExceeded) {
  const auto settings = settings_of({.max_in_flight = 3});
  ServerGroup server_group(settings, {server("a:1")});
  auto& member = server_group.member(0);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  together([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      if (member.enter(kStart)) continue;
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      --inside;
      member.leave();
    }
  });
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(member.enter(kStart)) << "a place was lost";
  EXPECT_TRUE(member.enter(kStart));
}

TEST(ServerGroupThreads, RateLimitOfAServerAppliesToAllThreadsTogether) {
  const auto bucket = limit::TokenBucket::make({.count = 1'000, .period = std::chrono::hours{1}}, 1'000);
  const auto settings = settings_of({.limit = bucket.value()});
  ServerGroup server_group(settings, {server("a:1")});
  std::atomic<int> admitted{0};
  together([&](int) {
    for (int i = 0; i < 1'000; ++i)
      if (!server_group.member(0).enter(kStart)) ++admitted;
  });
  EXPECT_EQ(admitted, 1'000);
}

// The log lines must alternate between ejection and readmission. Only one request makes each trial.
TEST(ServerGroupThreads, HealthChangesAreReportedOnceAndInOrder) {
  const auto settings = settings_of({});
  std::vector<bool> told;  // for each change: true if it was an ejection; protected by the member's mutex
  ServerGroup server_group(settings, {server("a:1")}, [&](const std::string& line) {
    told.push_back(line.find(" is ejected for ") != std::string::npos);
  });
  auto& member = server_group.member(0);
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  together([&](int number) {
    std::mt19937_64 random(seed + static_cast<unsigned>(number));
    for (int i = 0; i < kRounds; ++i) {
      const auto now = kStart + base::Duration{1'000 * i};
      if (random() % 8 == 0) member.unreachable(now);
      if (!member.serves() && member.due(now)) (void)member.begin_trial(now);
      member.answered(now, now);
      (void)member.weight(now);
    }
  });
  for (std::size_t at = 0; at < told.size(); ++at) ASSERT_EQ(told[at], at % 2 == 0) << at;
  EXPECT_LE(told.size(), 2 * OutageLog::kMostOutages) << "all changes happen within a minute";
  EXPECT_GE(member.ejections(), (told.size() + 1) / 2);
}

TEST(ServerGroupThreads, ConnectDuringAChangeOfAddressesGetsOldOrNewAddresses) {
  const auto settings = settings_of({});
  const auto at = [](const char* address) {
    return net::resolve({.host = address, .port = 1, .unix_path = {}}).value();
  };
  const Addresses places[] = {at("10.0.0.1"), at("10.0.0.2")};
  ServerGroup server_group(settings, {{"a:1", places[0]}});
  auto& member = server_group.member(0);
  std::atomic<int> wrong{0};
  together([&](int number) {
    for (std::uint32_t i = 1; i <= kRounds / 4; ++i) {
      if (number == 0) member.move_to(places[i % 2], kStart);
      const auto location = member.location();
      if (*location.addresses != places[location.address_changes % 2] ||
          location.address_changes > member.address_changes())
        ++wrong;
      member.answered(kStart, kStart);
    }
  });
  EXPECT_EQ(wrong, 0);
}

// Each request that finds the server due for a trial first takes a unit of the server's limit. Only one
// request then makes the trial. The other requests must return their units.
TEST(ServerGroupThreads, RequestThatIsNotChosenToTryAServerUsesNoUnitOfTheServersLimit) {
  constexpr int kTrials = 5'000;
  constexpr std::uint64_t kUnits = 10'000;
  const auto bucket =
      limit::TokenBucket::make({.count = kUnits, .period = std::chrono::hours{24 * 365}}, kUnits);
  auto settings = settings_of({.limit = bucket.value()});
  settings.servers.emplace_back();
  settings.ejection = {.least = base::Duration{1}, .most = base::Duration{1}};
  ServerGroup server_group(settings, {server("a:1"), server("b:1")});
  auto& member = server_group.member(0);
  auto now = kStart;
  std::barrier next_trial(kThreads, [&]() noexcept {
    member.unreachable(now);
    now += settings.ejection.most;
  });
  std::atomic<int> tried{0};
  together([&](int) {
    net::asio::io_context context(1);
    net::Watchdog watchdog(context.get_executor());
    Pool pool(context.get_executor(), watchdog, server_group);
    for (int i = 0; i < kTrials; ++i) {
      next_trial.arrive_and_wait();
      if (pool.lease({.now = now}).server() == 0) ++tried;
    }
  });
  EXPECT_EQ(tried, kTrials);
  std::uint64_t left = 0;
  while (!member.enter(now)) ++left;
  EXPECT_EQ(left, kUnits - kTrials);
}

TEST(ServerGroupThreads, OnlyOneRequestTriesAnEjectedServer) {
  const auto settings = settings_of({});
  for (int round = 0; round < 200; ++round) {
    ServerGroup server_group(settings, {server("a:1")});
    server_group.member(0).unreachable(kStart);
    std::atomic<int> taken{0};
    together([&](int) {
      if (server_group.member(0).begin_trial(kStart + settings.ejection.least)) ++taken;
    });
    ASSERT_EQ(taken, 1);
  }
}

}  // namespace
}  // namespace weir::upstream
