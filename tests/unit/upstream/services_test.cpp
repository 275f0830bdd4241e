#include "weir/upstream/services.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using ::testing::ElementsAre;

net::ServiceRecord record(const std::string& host, std::uint16_t priority, std::uint16_t weight,
                          std::uint16_t port = 80) {
  return {.target = {host, port, {}}, .priority = priority, .weight = weight};
}

std::vector<std::string> names(const std::vector<net::ServiceRecord>& records) {
  std::vector<std::string> names;
  for (const auto& each : records) names.push_back(each.target.to_string());
  return names;
}

UpstreamSettings settings() {
  UpstreamSettings settings;
  settings.name = "api";
  settings.service = ServerSettings{.address = {"_http._tcp.api.test", 0, {}},
                                    .max_in_flight = 7,
                                    .tls = true,
                                    .tls_name = "api.test",
                                    .is_service = true};
  settings.servers = {*settings.service};
  return settings;
}

std::vector<net::ServiceTarget> targets(const std::vector<net::ServiceRecord>& records) {
  std::vector<net::ServiceTarget> targets;
  for (const auto& each : choose_records(records)) targets.push_back({each, {}});
  return targets;
}

std::vector<std::uint32_t> weights(const std::vector<net::ServiceRecord>& records) {
  std::vector<std::uint32_t> weights;
  for (const auto& server : with_targets(settings(), targets(records)).servers)
    weights.push_back(server.weight);
  return weights;
}

TEST(Services, RecordsInAnotherOrderGiveTheSameServers) {
  std::vector<net::ServiceRecord> records{record("b", 10, 1), record("a", 10, 2), record("c", 5, 0),
                                          record("a", 10, 2, 81)};
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(records.begin(), records.end(), random);
    EXPECT_THAT(names(choose_records(records)), ElementsAre("c:80", "a:80", "a:81", "b:80"));
  }
}

TEST(Services, RepeatedTargetCountsOnceWithItsBestPriorityAndHighestWeight) {
  const auto chosen = choose_records({record("a", 20, 9), record("a", 10, 1), record("a", 10, 3)});
  ASSERT_THAT(names(chosen), ElementsAre("a:80"));
  EXPECT_EQ(chosen[0], record("a", 10, 3));
}

TEST(Services, TooManyRecordsAreReducedToTheBestPrioritiesThenTheHighestWeights) {
  std::vector<net::ServiceRecord> records;
  for (std::uint16_t i = 0; i < 200; ++i)
    records.push_back(record("n" + std::to_string(i), i < 150 ? 2 : 1, i));
  const auto chosen = choose_records(records);
  ASSERT_EQ(chosen.size(), kMaxServers);
  EXPECT_EQ(std::count_if(chosen.begin(), chosen.end(), [](const auto& one) { return one.priority == 1; }),
            50);
  for (const auto& one : chosen) EXPECT_GE(one.weight, 150 - 14) << one.priority;
}

TEST(Services, WeightsAreScaledToTheLargestWeightOfTheSamePriority) {
  EXPECT_THAT(weights({record("a", 1, 60), record("b", 1, 30), record("c", 1, 10)}),
              ElementsAre(240, 120, 40));
  EXPECT_THAT(weights({record("a", 1, 65'535), record("b", 1, 1)}), ElementsAre(240, 1));
  EXPECT_THAT(weights({record("a", 1, 1), record("b", 2, 500), record("c", 2, 250)}),
              ElementsAre(240, 240, 120));
}

TEST(Services, ServersOfWeightZeroGetVeryFewRequestsUnlessAllHaveWeightZero) {
  EXPECT_THAT(weights({record("a", 1, 0), record("b", 1, 5)}), ElementsAre(1, 240));
  EXPECT_THAT(weights({record("a", 1, 0), record("b", 1, 0)}), ElementsAre(1, 1));
}

TEST(Services, ServerFromARecordGetsTheOtherSettingsOfItsService) {
  const auto made = with_targets(settings(), targets({record("a", 3, 1, 8'443)}));
  ASSERT_EQ(made.servers.size(), 1U);
  const auto& server = made.servers[0];
  EXPECT_EQ(server.name(), "a:8443");
  EXPECT_EQ(server.priority, 3);
  EXPECT_EQ(server.max_in_flight, 7U);
  EXPECT_TRUE(server.tls);
  EXPECT_EQ(server.tls_name, "api.test") << "a name from DNS must not decide which certificate is right";
  EXPECT_FALSE(server.is_service);
  EXPECT_EQ(with_targets(made, targets({record("a", 3, 1, 8'443)})), made);
  EXPECT_EQ(settings().servers[0].name(), "srv:_http._tcp.api.test");
}

TEST(Services, KnownServerKeepsItsAddressesIfItsLookUpFails) {
  const auto at = [](const char* address) { return net::resolve({address, 80, {}}).value(); };
  auto told = targets({record("a", 1, 1), record("b", 1, 1)});
  told[0].addresses = at("10.0.0.1");
  told[1].addresses = at("10.0.0.2");
  auto plain = settings();
  plain.service->tls = plain.servers[0].tls = false;
  const ServerGroup group(with_targets(plain, told), servers_of(told, nullptr));
  told[0].addresses.clear();  // the look-up of `a` fails
  told[1].addresses = at("10.0.0.9");
  const auto servers = servers_of(told, &group);
  EXPECT_EQ(servers[0], (Server{"a:80", at("10.0.0.1")}));
  EXPECT_EQ(servers[1], (Server{"b:80", at("10.0.0.2")})) << "the look-ups of the name itself change them";
  EXPECT_EQ(servers_of(told, nullptr)[1], (Server{"b:80", at("10.0.0.9")}));
}

}  // namespace
}  // namespace weir::upstream
