#include "weir/observe/counters.hpp"

#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

constexpr Counters::Shape kShape{.routes = 3, .rules = 2, .upstreams = 2};

TEST(Counters, EachRouteAndStatusHasItsOwnCounter) {
  Counters counters(kShape);
  std::set<const Tally*> cells;
  for (const std::optional<std::size_t> route : {std::optional<std::size_t>{}, {0}, {1}, {2}}) {
    cells.insert(&counters.requests(route, Counters::kNoStatus));
    for (unsigned status = 100; status <= Counters::kOtherStatus; ++status)
      cells.insert(&counters.requests(route, status));
  }
  EXPECT_EQ(cells.size(), 4U * 502U);
}

TEST(Counters, StatusesBelow100OrAbove599ShareOneCounter) {
  Counters counters(kShape);
  for (const unsigned status : {1U, 99U, 600U, 999U, 4'000'000'000U}) counters.requests(1, status).add();
  EXPECT_EQ(counters.requests(1, Counters::kOtherStatus).value(), 5U);
  EXPECT_EQ(counters.requests(1, Counters::kNoStatus).value(), 0U);
  EXPECT_EQ(counters.requests(1, 100).value(), 0U);
  EXPECT_EQ(counters.requests(1, 599).value(), 0U);
}

TEST(Counters, RulesAndOutcomesAreCountedSeparately) {
  Counters counters(kShape);
  for (limit::RuleIndex rule = 0; rule < 2; ++rule)
    for (std::size_t i = 0; i < kRuleOutcomes; ++i)
      counters.decisions(rule, static_cast<RuleOutcome>(i)).add(rule * 100U + i + 1);
  EXPECT_EQ(counters.decisions(0, RuleOutcome::Admitted).value(), 1U);
  EXPECT_EQ(counters.decisions(0, RuleOutcome::StoreFailed).value(), 6U);
  EXPECT_EQ(counters.decisions(1, RuleOutcome::Refused).value(), 103U);
}

TEST(Counters, GaugesCanDecrease) {
  Counters counters({});
  counters.queue_depth.add(3);
  counters.queue_depth.remove();
  EXPECT_EQ(counters.queue_depth.value(), 2);
  counters.queue_depth.remove(5);
  EXPECT_EQ(counters.queue_depth.value(), -3);
}

TEST(Counters, ScopedCountRaisesItsGaugeUntilItIsDestroyed) {
  Gauge gauge;
  {
    const ScopedCount one(gauge), other(gauge);
    EXPECT_EQ(gauge.value(), 2);
  }
  EXPECT_EQ(gauge.value(), 0);
}

TEST(Counters, ClearedRouteStartsAtZeroAndOtherRoutesKeepTheirCounts) {
  Counters counters(kShape);
  for (const std::size_t route : {0, 1}) {
    counters.requests(route, 200).add(3);
    counters.route(route).seconds.record(base::Duration{700});
  }
  counters.clear_route(1);
  EXPECT_EQ(counters.requests(1, 200).value(), 0U);
  EXPECT_EQ(counters.route(1).seconds.read().count, 0U);
  EXPECT_EQ(counters.route(1).seconds.read().sum_us, 0U);
  EXPECT_EQ(counters.requests(0, 200).value(), 3U);
  EXPECT_EQ(counters.route(0).seconds.read().sum_us, 700U);
}

TEST(Counters, ClearedUpstreamStartsAtZeroAndOtherUpstreamsKeepTheirCounts) {
  Counters counters(kShape);
  for (const std::size_t upstream : {0, 1}) {
    counters.upstream(upstream).attempts.add(3);
    counters.upstream(upstream).seconds.record(base::Duration{700});
  }
  counters.clear_upstream(0);
  EXPECT_EQ(counters.upstream(0).attempts.value(), 0U);
  EXPECT_EQ(counters.upstream(0).seconds.read().count, 0U);
  EXPECT_EQ(counters.upstream(1).attempts.value(), 3U);
  EXPECT_EQ(counters.upstream(1).seconds.read().count, 1U);
}

TEST(Counters, CountersOfARouteTakeTheDocumentedMemory) {
  EXPECT_EQ(sizeof(RouteTallies), 4192U);  // docs/metrics.md states this size
}

TEST(Counters, AnotherThreadCanReadCountersWhileTheirOwnerWrites) {
  constexpr std::uint64_t kTimes = 200'000;
  Counters counters(kShape);
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < kTimes; ++i) {
      counters.requests(0, 200).add();
      counters.route(0).seconds.record(base::Duration{100});
    }
  });
  std::uint64_t last = 0;
  // The count of requests must never decrease. The loop ends when the count reaches kTimes.
  while (last < kTimes) {
    const auto now = counters.requests(0, 200).value();
    ASSERT_GE(now, last);
    ASSERT_LE(counters.route(0).seconds.read().count, kTimes);
    last = now;
  }
  writer.join();
  EXPECT_EQ(counters.route(0).seconds.read().sum_us, 100 * kTimes);
}

}  // namespace
}  // namespace weir::observe
