#include "weir/observe/top_clients.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using namespace std::chrono_literals;

class TopClientsTest : public testing::Test {
 protected:
  void count(TopClients& top, std::uint32_t client, base::Duration after, bool admitted = true,
             limit::Cost cost = 1) {
    policy::Request request;
    request.client.network = base::IpAddress::v4(client);
    const limit::Charge charge{.key = {client, 1}, .limiter = nullptr, .cost = cost};
    TopClients::Writer(top, kStart + after).add(rule_, charge, admitted, request);
  }
  static std::optional<TopOfRule> read(const TopClients& top, base::Duration after) {
    std::optional<TopOfRule> all;
    top.read(3, kStart + after, all);
    return all;
  }

  static constexpr base::TimePoint kStart{base::Duration{1'771'581'600'000'000}};
  policy::Rule rule_{.name = "per-ip",
                     .index = 3,
                     .key = {{{policy::Attribute::Ip, {}}}},
                     .limiter = *limit::Concurrency::make(1)};
};

TEST_F(TopClientsTest, ListOfTopClientsCoversTheLastOneToTwoMinutes) {
  TopClients top(4);
  EXPECT_EQ(read(top, 0s), std::nullopt);
  count(top, 0x01020304, 0s);
  count(top, 0x01020304, 59s, true, 5);
  count(top, 0x01020304, 59s, false, 7);
  ASSERT_TRUE(read(top, 59s));
  EXPECT_EQ(read(top, 59s)->admitted.total(), 6U);
  EXPECT_EQ(read(top, 59s)->admitted.counters()[0].text(), "1.2.3.4");
  EXPECT_EQ(read(top, 59s)->refused.total(), 7U);
  EXPECT_EQ(read(top, 59s)->since, kStart);
  count(top, 0x01020304, 60s);  // the next generation begins
  EXPECT_EQ(read(top, 119s)->admitted.total(), 7U);
  count(top, 0x01020304, 121s);  // the counts before 60 s are no longer included
  EXPECT_EQ(read(top, 121s)->admitted.total(), 2U);
  EXPECT_EQ(read(top, 121s)->since, kStart + 60s);
  EXPECT_EQ(read(top, 250s), std::nullopt);
  count(top, 0x01020304, 400s);  // old counts do not return after a pause
  EXPECT_EQ(read(top, 400s)->admitted.total(), 1U);
}

TEST_F(TopClientsTest, CountsOfAllWorkersAreAddedUpInTheDocumentedMemory) {
  TopClients one(4), other(4);
  for (std::uint32_t client = 1; client < 100; ++client) count(one, client, 0s);
  count(other, 7, 1s, true, 1000);
  std::optional<TopOfRule> all;
  one.read(3, kStart + 2s, all);
  other.read(3, kStart + 2s, all);
  EXPECT_EQ(all->admitted.total(), 99U + 1000U);
  EXPECT_EQ(all->admitted.counters()[0].text(), "0.0.0.7");
  const auto memory = one.memory();
  for (std::uint32_t client = 1; client < 10'000; ++client) count(one, client, 1s);
  EXPECT_EQ(one.memory(), memory);
  EXPECT_LT(memory, sizeof(TopClients) + 4096);
  one.forget(3);
  EXPECT_EQ(read(one, 2s), std::nullopt);
}

TEST_F(TopClientsTest, AnotherThreadCanReadTheListWhileAWorkerWrites) {
  TopClients top(8);
  std::thread worker([&] {
    for (std::uint32_t i = 0; i < 50'000; ++i) count(top, i % 50, base::Duration(i * 5000));
  });
  for (int i = 0; i < 200; ++i) {
    const auto all = read(top, 1s);
    EXPECT_TRUE(!all || all->admitted.counters().size() <= 8U);
  }
  worker.join();
}

}  // namespace
}  // namespace weir::observe
