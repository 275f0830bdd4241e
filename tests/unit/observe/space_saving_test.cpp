#include "weir/observe/space_saving.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

base::Digest128 client(std::uint64_t number) {
  return {number * 0x9e3779b97f4a7c15, number};
}

std::size_t no_text(std::span<char>) {
  return 0;
}

// A stream of requests and the true cost of each client. The tests compare the summary with these costs.
struct Truth {
  std::map<std::uint64_t, std::uint64_t> spent;  // the cost of each client
  std::uint64_t total = 0;

  void feed(SpaceSaving& summary, std::uint64_t who, std::uint64_t cost) {
    summary.add(client(who), cost, no_text);
    spent[who] += cost;
    total += cost;
  }
  // Adds requests that are distributed as among real clients: client n sends about 1/n as many requests as
  // client 1.
  void feed_many(SpaceSaving& summary, std::mt19937_64& chance, int count) {
    std::uniform_real_distribution<double> part(0, 8);
    std::uniform_int_distribution<std::uint64_t> cost(1, 20);
    for (int i = 0; i < count; ++i)
      feed(summary, static_cast<std::uint64_t>(std::exp(part(chance))), chance() % 4 == 0 ? cost(chance) : 1);
  }
};

void expect_laws(const SpaceSaving& summary, const Truth& truth) {
  const auto bound = truth.total / summary.capacity();
  EXPECT_EQ(summary.total(), truth.total);
  EXPECT_LE(summary.counters().size(), summary.capacity());
  EXPECT_LE(summary.floor(), bound);
  std::map<std::uint64_t, const SpaceSaving::Counter*> found;
  for (const auto& counter : summary.counters()) {
    const auto spent = truth.spent.find(counter.client.hi);
    ASSERT_NE(spent, truth.spent.end());
    EXPECT_LE(spent->second, counter.count);
    EXPECT_GE(spent->second, counter.count - counter.error);
    EXPECT_LE(counter.error, bound);
    EXPECT_TRUE(found.emplace(counter.client.hi, &counter).second) << "twice";
  }
  for (const auto& [who, spent] : truth.spent) {
    if (found.contains(who)) continue;
    EXPECT_LE(spent, summary.floor()) << who;
    EXPECT_LE(spent, bound) << who;
  }
}

TEST(SpaceSaving, CountsStayWithinTheirErrorBoundsForRandomClients) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 chance(seed);
  for (const std::size_t capacity : {1, 2, 7, 64}) {
    SpaceSaving summary(capacity);
    Truth truth;
    for (int round = 0; round < 20; ++round) {
      truth.feed_many(summary, chance, 200);
      expect_laws(summary, truth);
    }
    std::uint64_t sum = 0;
    for (const auto& counter : summary.counters()) sum += counter.count;
    EXPECT_EQ(sum, truth.total);
  }
}

TEST(SpaceSaving, CountsAreExactWhileEachClientHasACounter) {
  SpaceSaving summary(8);
  Truth truth;
  for (std::uint64_t who = 1; who <= 8; ++who) truth.feed(summary, who, who);
  for (const auto& counter : summary.counters()) {
    EXPECT_EQ(counter.count, counter.client.hi);
    EXPECT_EQ(counter.error, 0U);
  }
  EXPECT_EQ(summary.floor(), 1U);
}

TEST(SpaceSaving, MergedCountsStayWithinTheirErrorBounds) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 chance(seed);
  for (int round = 0; round < 30; ++round) {
    SpaceSaving all(16);
    Truth truth;
    const int parts = 1 + round % 4;
    for (int part = 0; part < parts; ++part) {
      SpaceSaving one(16);
      truth.feed_many(one, chance, 1 + static_cast<int>(chance() % 300));
      all.merge(one);
    }
    expect_laws(all, truth);
  }
}

TEST(SpaceSaving, OnlyAClientThatGetsACounterHasItsTextFormatted) {
  SpaceSaving summary(2);
  const auto add = [&](std::uint64_t who, std::string_view text) {
    int described = 0;
    summary.add(client(who), 1, [&](std::span<char> room) {
      ++described;
      return text.copy(room.data(), room.size());
    });
    return described;
  };
  EXPECT_EQ(add(1, "one"), 1);
  EXPECT_EQ(add(1, "one"), 0);
  EXPECT_EQ(add(2, "two"), 1);
  EXPECT_EQ(add(3, std::string(100, 'x')), 1);
  const auto of = [&](std::uint64_t who) {
    const auto all = summary.counters();
    return std::find_if(all.begin(), all.end(),
                        [&](const auto& counter) { return counter.client == client(who); });
  };
  EXPECT_EQ(of(1)->text(), "one");
  EXPECT_EQ(of(2), summary.counters().end());
  EXPECT_EQ(of(3)->text(), std::string(SpaceSaving::kText, 'x'));
  EXPECT_EQ(of(3)->error, 1U);
}

TEST(SpaceSaving, IsEmptyAfterClear) {
  SpaceSaving summary(2);
  Truth truth;
  for (std::uint64_t who = 1; who <= 9; ++who) truth.feed(summary, who, 1);
  summary.clear();
  EXPECT_TRUE(summary.counters().empty());
  EXPECT_EQ(summary.total(), 0U);
  Truth anew;
  for (std::uint64_t who = 1; who <= 9; ++who) anew.feed(summary, who, who);
  expect_laws(summary, anew);
}

}  // namespace
}  // namespace weir::observe
