#include "weir/upstream/balancer.hpp"

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

std::vector<std::uint64_t> identities(std::size_t count) {
  std::vector<std::uint64_t> made;
  for (std::size_t at = 0; at < count; ++at)
    made.push_back(Balancer::identity("10.0.0." + std::to_string(at) + ":80", 0));
  return made;
}

constexpr std::uint64_t all(std::size_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// The servers of a test with their loads, and how often each was chosen.
struct Servers {
  Servers(Balance balance, std::vector<std::uint32_t> weights)
      : balancer(balance, identities(weights.size())), taken(weights.size()) {
    for (const auto weight : weights) loads.push_back({weight, 0});
  }
  std::size_t choose(std::uint64_t candidates, std::uint64_t word = 0) {
    return balancer.choose(candidates, loads, word);
  }
  void choose_often(int times, std::mt19937_64& random) {
    for (int i = 0; i < times; ++i) ++taken[choose(all(loads.size()), random())];
  }
  Balancer balancer;
  std::vector<Load> loads;
  std::vector<int> taken;
};

class BalancerLaws : public ::testing::Test {
 protected:
  BalancerLaws() : trace_(__FILE__, __LINE__, "seed " + std::to_string(seed_)), random(seed_) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random() % bound); }
  std::vector<std::uint32_t> random_weights(std::size_t count, std::uint32_t most) {
    std::vector<std::uint32_t> weights(count);
    for (auto& weight : weights) weight = static_cast<std::uint32_t>(1 + below(most));
    return weights;
  }

 private:
  const std::uint64_t seed_ = std::random_device{}();
  const ::testing::ScopedTrace trace_;

 protected:
  std::mt19937_64 random;
};

TEST(Balancer, RoundRobinAlternatesBetweenTheServerOfHighWeightAndTheOthers) {
  Servers servers(Balance::RoundRobin, {5, 1, 1});
  std::vector<std::size_t> order;
  for (int i = 0; i < 14; ++i) order.push_back(servers.choose(0b111));
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0}));
}

// Each server must get exactly its share of n consecutive requests, where n is the sum of the weights.
TEST_F(BalancerLaws, RoundRobinGivesEachServerExactlyItsWeightedShare) {
  for (int trial = 0; trial < 50; ++trial) {
    const auto weights = random_weights(1 + below(12), 9);
    Servers servers(Balance::RoundRobin, weights);
    std::uint32_t sum = 0;
    for (const auto weight : weights) sum += weight;
    for (int round = 1; round <= 3; ++round) {
      for (std::uint32_t i = 0; i < sum; ++i) ++servers.taken[servers.choose(all(weights.size()))];
      for (std::size_t at = 0; at < weights.size(); ++at)
        ASSERT_EQ(servers.taken[at], round * static_cast<int>(weights[at])) << at;
    }
  }
}

// Compares the choice with its definition in rational numbers: no candidate has a smaller in_flight ÷ weight
// than the chosen server.
TEST_F(BalancerLaws, LeastInFlightNeverChoosesABusierServer) {
  for (int trial = 0; trial < 2'000; ++trial) {
    Servers servers(Balance::LeastInFlight, random_weights(1 + below(10), 5));
    const auto count = servers.loads.size();
    for (auto& load : servers.loads) load.in_flight = static_cast<std::uint32_t>(below(8));
    const auto candidates = 1 + below(all(count));
    const auto chosen = servers.choose(candidates);
    ASSERT_TRUE(candidates >> chosen & 1U);
    const auto busy = [&](std::size_t at) {
      return static_cast<double>(servers.loads[at].in_flight) / servers.loads[at].weight;
    };
    for (std::size_t at = 0; at < count; ++at) {
      if ((candidates >> at & 1U) == 0) continue;
      ASSERT_LE(busy(chosen), busy(at) + 1e-9) << at;
    }
  }
}

// The requests never end, so the numbers of requests in flight grow in proportion to the weights.
TEST_F(BalancerLaws, LeastInFlightLoadsServersInProportionToTheirWeights) {
  Servers servers(Balance::LeastInFlight, {1, 2, 5});
  for (int i = 0; i < 80; ++i) ++servers.loads[servers.choose(0b111)].in_flight;
  EXPECT_EQ(servers.loads[0].in_flight, 10U);
  EXPECT_EQ(servers.loads[1].in_flight, 20U);
  EXPECT_EQ(servers.loads[2].in_flight, 50U);
}

TEST_F(BalancerLaws, LeastInFlightChoosesIdleServersInProportionToTheirWeights) {
  for (const auto balance : {Balance::LeastInFlight, Balance::RandomTwo}) {
    Servers servers(balance, {1, 3});
    servers.choose_often(4'000, random);
    EXPECT_NEAR(servers.taken[0], 1'000, balance == Balance::RandomTwo ? 150 : 0);
  }
}

// The pairs are drawn from servers with the weights 1, 1 and 2. The server with weight 2 is busy, so it is
// never chosen. The other two servers get equal shares.
TEST_F(BalancerLaws, RandomTwoComparesTheLoadsOfServersInProportionToTheirWeights) {
  Servers servers(Balance::RandomTwo, {1, 1, 2});
  servers.loads[2].in_flight = 1;
  servers.choose_often(20'000, random);
  EXPECT_EQ(servers.taken[2], 0);
  EXPECT_NEAR(servers.taken[0], 10'000, 500);
  // now the third server is less busy than the others
  servers.loads[0].in_flight = servers.loads[1].in_flight = 1;
  servers.taken = {0, 0, 0};
  servers.choose_often(20'000, random);
  // One pair in six lacks the third server: the pair of the two servers with weight 1.
  EXPECT_NEAR(servers.taken[2], 16'667, 500);
}

TEST_F(BalancerLaws, RequestsWithTheSameHashGoToTheSameServer) {
  Servers servers(Balance::Hash, random_weights(9, 5));
  for (int i = 0; i < 500; ++i) {
    const auto word = random();
    const auto first = servers.choose(all(9), word);
    for (int again = 0; again < 3; ++again) ASSERT_EQ(servers.choose(all(9), word), first);
  }
}

TEST_F(BalancerLaws, HashedClientsAreDistributedInProportionToWeights) {
  Servers servers(Balance::Hash, {1, 2, 1, 4});
  servers.choose_often(80'000, random);
  const std::array<int, 4> expected{10'000, 20'000, 10'000, 40'000};
  for (std::size_t at = 0; at < 4; ++at) EXPECT_NEAR(servers.taken[at], expected[at], 700) << at;
}

// If a server is removed, only its own hashes move to other servers. If a server is added, hashes move only
// to that server.
TEST_F(BalancerLaws, AddedOrRemovedServerMovesOnlyTheClientsThatHashToIt) {
  Servers servers(Balance::Hash, random_weights(8, 4));
  for (int i = 0; i < 5'000; ++i) {
    const auto word = random();
    const auto gone = below(8);
    const auto before = servers.choose(all(8), word);
    const auto after = servers.choose(all(8) & ~(std::uint64_t{1} << gone), word);
    ASSERT_NE(after, gone);
    if (before != gone) {
      ASSERT_EQ(after, before);
    }
  }
}

// A server whose weight grows (slow start) gains hashes and loses none.
TEST_F(BalancerLaws, ServerWithAGrowingWeightGetsMoreHashedClientsAndLosesNone) {
  Servers servers(Balance::Hash, {40, 40, 4});
  for (int i = 0; i < 2'000; ++i) {
    const auto word = random();
    servers.loads[2].weight = 4;
    const auto before = servers.choose(0b111, word);
    servers.loads[2].weight = 40;
    const auto after = servers.choose(0b111, word);
    ASSERT_TRUE(after == before || after == 2) << before << " to " << after;
  }
}

// One client sends all requests. No server may exceed its bound. The requests above the bound must always go
// to the same other servers.
TEST_F(BalancerLaws, HashBalanceGivesNoServerMoreThanItsBoundedLoad) {
  for (int trial = 0; trial < 50; ++trial) {
    Servers servers(Balance::Hash, random_weights(2 + below(10), 4));
    const auto count = servers.loads.size();
    double weights = 0;
    for (const auto& load : servers.loads) weights += load.weight;
    const auto word = random();
    for (int in_flight = 1; in_flight <= 400; ++in_flight) {
      const auto chosen = servers.choose(all(count), word);
      ASSERT_EQ(servers.choose(all(count), word), chosen);
      auto& load = servers.loads[chosen];
      ++load.in_flight;
      const auto bound =
          std::max<double>(Balancer::kUnbounded, std::ceil(1.25 * in_flight * load.weight / weights));
      ASSERT_LE(load.in_flight, bound) << in_flight << " in flight";
    }
  }
}

TEST(Balancer, HashBalanceKeepsAFewConcurrentRequestsOfAClientOnOneServer) {
  Servers servers(Balance::Hash, {1, 1, 1, 1, 1, 1, 1, 1});
  const auto home = servers.choose(all(8), 42);
  for (std::uint32_t i = 0; i < Balancer::kUnbounded; ++i) {
    ASSERT_EQ(servers.choose(all(8), 42), home);
    ++servers.loads[home].in_flight;
  }
  EXPECT_NE(servers.choose(all(8), 42), home);
}

TEST(Balancer, ServersWithTheSameAddressHashDifferently) {
  EXPECT_EQ(Balancer::identity("a:1", 0), Balancer::identity("a:1", 0));
  EXPECT_NE(Balancer::identity("a:1", 0), Balancer::identity("a:2", 0));
  EXPECT_NE(Balancer::identity("a:1", 0), Balancer::identity("a:1", 1));
}

// Under every balance and any loads, the chosen server is a candidate, even with 64 servers.
TEST_F(BalancerLaws, OnlyACandidateServerIsEverChosen) {
  for (const auto balance :
       {Balance::RoundRobin, Balance::LeastInFlight, Balance::RandomTwo, Balance::Hash}) {
    Servers servers(balance, random_weights(kMaxServers, 25'600));
    for (int i = 0; i < 2'000; ++i) {
      for (auto& load : servers.loads) load.in_flight = static_cast<std::uint32_t>(below(1'000'000));
      const auto candidates = random() & random() & random();
      if (candidates == 0) continue;
      ASSERT_TRUE(candidates >> servers.choose(candidates, random()) & 1U);
    }
  }
}

}  // namespace
}  // namespace weir::upstream
