#include "weir/observe/refused_clients.hpp"

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

class RefusedClientsTest : public testing::Test {
 protected:
  static policy::Rule rule_of(limit::RuleIndex label) {
    return {.name = "per-ip",
            .index = label,
            .key = {{{policy::Attribute::Ip, {}}}},
            .limiter = *limit::Concurrency::make(1)};
  }
  void refuse(std::uint32_t client, int times = 1) {
    policy::Request request;
    request.client.network = base::IpAddress::v4(client);
    for (int i = 0; i < times; ++i) refused_.add(rule_, {client, 1}, request);
  }
  SpaceSaving take(limit::RuleIndex label = 3) {
    SpaceSaving counts(RefusedClients::kCounters);
    refused_.take(label, counts);
    return counts;
  }

  policy::Rule rule_ = rule_of(3);
  RefusedClients refused_;
};

TEST_F(RefusedClientsTest, OnlyRefusalsOfWatchedRulesAreCounted) {
  EXPECT_FALSE(refused_.is_on());
  refuse(0x01020304);
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  EXPECT_TRUE(refused_.is_on());
  refuse(0x01020304, 2);
  rule_ = rule_of(4);
  refuse(0x01020304);
  const auto counts = take();
  ASSERT_EQ(counts.counters().size(), 1U);
  EXPECT_EQ(counts.counters()[0].count, 2U);
  EXPECT_EQ(counts.counters()[0].text(), "1.2.3.4");
  EXPECT_EQ(take(4).total(), 0U);
}

TEST_F(RefusedClientsTest, CountsStartAtZeroAgainOnceTheyHaveBeenRead) {
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  refuse(1, 5);
  EXPECT_EQ(take().total(), 5U);
  EXPECT_EQ(take().total(), 0U);
  refuse(2);
  EXPECT_EQ(take().total(), 1U);
}

TEST_F(RefusedClientsTest, RulesThatStayWatchedKeepTheirCounts) {
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  refuse(1, 5);
  refused_.watch(std::array<limit::RuleIndex, 2>{2, 3});
  refuse(1);
  EXPECT_EQ(take().total(), 6U);
  refuse(1);
  refused_.watch({});
  EXPECT_FALSE(refused_.is_on());
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  EXPECT_EQ(take().total(), 0U) << "nobody watched the rule in between";
}

TEST_F(RefusedClientsTest, CountsOfARuleThatWasForgottenStartAtZero) {
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  refuse(1, 5);
  refused_.forget(3);
  EXPECT_EQ(take().total(), 0U);
}

TEST_F(RefusedClientsTest, CountOfAClientMinusItsErrorIsNeverAboveTheTrueCount) {
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  for (std::uint32_t client = 1; client <= 10 * RefusedClients::kCounters; ++client) refuse(client);
  const auto counts = take();
  EXPECT_EQ(counts.counters().size(), RefusedClients::kCounters);
  for (const auto& counter : counts.counters()) ASSERT_LE(counter.count - counter.error, 1U);
}

TEST_F(RefusedClientsTest, NoRefusalIsLostWhileAnotherThreadReadsTheCounts) {
  refused_.watch(std::array<limit::RuleIndex, 1>{3});
  constexpr int kEach = 20'000;
  std::thread worker([this] { refuse(1, kEach); });
  std::uint64_t sum = 0;
  while (sum < kEach / 2) sum += take().total();
  worker.join();
  sum += take().total();
  EXPECT_EQ(sum, static_cast<std::uint64_t>(kEach));
}

}  // namespace
}  // namespace weir::observe
