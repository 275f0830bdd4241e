#include "weir/limit/adapt.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::TimePoint;

constexpr TimePoint kAtFirst{std::chrono::seconds(1'700'000'000)};
constexpr AdaptTerms kBoth{.latency_above = 500ms, .errors_above = 5, .floor = 4};

UpstreamAnswers answers(std::uint64_t all, std::uint64_t failed, Duration mean) {
  return {.all = all, .failed = failed, .measured = all, .time = mean * static_cast<std::int64_t>(all)};
}

TEST(Unwell, UpstreamIsUnwellIfItsMeanTimeExceedsTheBound) {
  EXPECT_FALSE(is_unwell(kBoth, answers(100, 0, 500ms)));
  EXPECT_TRUE(is_unwell(kBoth, answers(100, 0, 500ms + 1us)));
  EXPECT_FALSE(is_unwell({.errors_above = 5}, answers(100, 0, 1h))) << "latency_above is not set";
}

TEST(Unwell, UpstreamIsUnwellIfItsPercentageOfFailuresExceedsTheBound) {
  EXPECT_FALSE(is_unwell(kBoth, answers(100, 5, 1ms)));
  EXPECT_TRUE(is_unwell(kBoth, answers(100, 6, 1ms)));
  EXPECT_FALSE(is_unwell({.latency_above = 500ms}, answers(100, 100, 1ms))) << "errors_above is not set";
}

TEST(Unwell, UpstreamWithTooFewAnswersIsNotUnwell) {
  EXPECT_FALSE(is_unwell(kBoth, {}));
  EXPECT_FALSE(is_unwell(kBoth, answers(kLeastAnswers - 1, kLeastAnswers - 1, 1h)));
  EXPECT_TRUE(is_unwell(kBoth, answers(kLeastAnswers, 0, 1h)));
}

TEST(Unwell, UpstreamIsNotUnwellAfterOnlyTwoFailures) {
  for (const std::uint64_t all : {10, 15, 19, 39}) {
    EXPECT_FALSE(is_unwell(kBoth, answers(all, 2, 1ms))) << all;
    EXPECT_TRUE(is_unwell(kBoth, answers(all, 3, 1ms))) << all;
  }
}

TEST(Unwell, UpstreamWithoutAMeasuredLatencyIsUnwellOnlyForItsFailures) {
  EXPECT_FALSE(is_unwell({.latency_above = 500ms}, {.all = 20, .failed = 20}));
  EXPECT_TRUE(is_unwell(kBoth, {.all = 20, .failed = 20})) << "refused connections are failures";
}

TEST(Adapted, FactorHalvesWhileTheUpstreamIsUnwellAndGrowsOtherwise) {
  const auto bad = answers(100, 100, 1s), good = answers(100, 0, 1ms);
  std::vector<int> factors;
  Factor factor = kWholeFactor;
  for (int period = 0; period < 5; ++period) factors.push_back(factor = adapted(kBoth, bad, factor));
  EXPECT_EQ(factors, (std::vector<int>{10, 5, 4, 4, 4})) << "never below the floor";
  for (int period = 0; period < 15; ++period) factor = adapted(kBoth, good, factor);
  EXPECT_EQ(factor, kWholeFactor - 1);
  EXPECT_EQ(adapted(kBoth, good, factor), kWholeFactor);
  EXPECT_EQ(adapted(kBoth, good, kWholeFactor), kWholeFactor) << "never above the whole limit";
}

// Returns the mean factor in percent if each answer fails independently with the probability `share`.
double mean_factor(int answers_each_period, double share) {
  constexpr int kPeriods = 20'000;
  std::mt19937_64 random(7);
  std::binomial_distribution<int> failures(answers_each_period, share);
  Factor factor = kWholeFactor;
  double sum = 0;
  for (int period = 0; period < kPeriods; ++period) {
    const auto failed = static_cast<std::uint64_t>(failures(random));
    factor = adapted(kBoth, answers(static_cast<std::uint64_t>(answers_each_period), failed, 1ms), factor);
    sum += percent_of(factor);
  }
  return sum / kPeriods;
}

// docs/design/adapt.md states the numbers that this test checks.
TEST(Adapted, RareFailuresLowerTheFactorOnlyALittle) {
  EXPECT_NEAR(mean_factor(10, 0.02), 99, 2);
  EXPECT_NEAR(mean_factor(15, 0.02), 99, 2);
  EXPECT_NEAR(mean_factor(30, 0.02), 93, 3);
  EXPECT_NEAR(mean_factor(100, 0.02), 95, 3);
  EXPECT_NEAR(mean_factor(10, 0.2), 31, 3) << "many failures still lower it";
  EXPECT_NEAR(mean_factor(50, 0.1), 20, 2);
}

TEST(Adapted, FactorGrowsWhileThereAreNoAnswers) {
  EXPECT_EQ(adapted(kBoth, {}, 4), 5);
}

// The limiters that can be scaled, with 100 units in 10 seconds each.
std::vector<Limiter> scalable() {
  const auto utc = std::make_shared<Calendar>("UTC", std::vector<Calendar::Run>{{-1, 0h}});
  constexpr Rate kRate{100, Duration{10s}};
  return {TokenBucket::make(kRate, 100).value(), Gcra::make(kRate, 99).value(),
          FixedWindow::make(kRate).value(),      FixedWindow::make(100, FixedWindow::Align::Day, utc).value(),
          SlidingWindow::make(kRate).value(),    SlidingLog::make(kRate).value(),
          SlidingLog::make(kRate, 10).value(),   Concurrency::make(100).value()};
}

unsigned admitted_at_once(const Limiter& limiter, Cell& cell, TimePoint now) {
  unsigned admitted = 0;
  for (auto one = step(limiter, cell, now, 1); one.outcome.allowed; one = step(limiter, cell, now, 1)) {
    cell = one.next;
    ++admitted;
  }
  return admitted;
}

TEST(Scaled, ScaledLimitIsTheLimitTimesTheFactor) {
  for (const auto& whole : scalable())
    for (const Factor factor : std::initializer_list<Factor>{1, 7, 19, 20}) {
      const auto limiter = scaled(whole, factor, 1).value();
      Cell cell;
      EXPECT_EQ(quota(limiter), 100U * factor / kWholeFactor) << describe(whole);
      EXPECT_EQ(admitted_at_once(limiter, cell, kAtFirst), quota(limiter)) << describe(whole);
    }
}

TEST(Scaled, FactorOf100PercentLeavesTheLimiterUnchanged) {
  for (const auto& whole : scalable()) EXPECT_EQ(scaled(whole, kWholeFactor, 1).value(), whole);
}

TEST(Scaled, ScaledBucketRefillsAtTheScaledRate) {
  const auto limiter = scaled(TokenBucket::make({100, Duration{10s}}, 100).value(), 5, 1).value();
  Cell cell;
  EXPECT_EQ(admitted_at_once(limiter, cell, kAtFirst), 25U);
  EXPECT_EQ(admitted_at_once(limiter, cell, kAtFirst + 2s), 5U) << "2.5 instead of 10 a second";
}

TEST(Scaled, ScaledLimitIsAtLeastTheSmallestCostAndAtMostTheWholeLimit) {
  for (const auto& whole : scalable()) {
    EXPECT_EQ(quota(scaled(whole, 1, 30).value()), 30U) << describe(whole);
    EXPECT_EQ(quota(scaled(whole, 1, 200).value()), 100U) << describe(whole);
  }
}

TEST(Scaled, UnitsChargedUnderAnEarlierFactorStillCount) {
  for (const auto& whole : scalable()) {
    const auto half = scaled(whole, 10, 1).value();
    Cell cell;
    EXPECT_EQ(admitted_at_once(half, cell, kAtFirst), 50U) << describe(whole);
    const bool bucket = gcra_core(whole) != nullptr;
    EXPECT_EQ(admitted_at_once(whole, cell, kAtFirst), bucket ? 0U : 50U)
        << "units that a bucket charged under half the factor cost twice the time: " << describe(whole);
    EXPECT_FALSE(step(half, cell, kAtFirst, 1).outcome.allowed) << "beyond the smaller limit";
    EXPECT_EQ(step(half, cell, kAtFirst, 1).outcome.remaining, 0U);
  }
}

// A rule that adapts must never admit a request that its whole limit would refuse in the same state.
TEST(Scaled, ScaledLimitNeverAdmitsWhatTheWholeLimitRefuses) {
  for (const auto& whole : scalable()) {
    Cell cell;
    unsigned admitted = 0;
    for (int turn = 0; turn < 4'000; ++turn) {
      const auto now = kAtFirst + turn * 37ms;
      const auto limiter = scaled(whole, static_cast<Factor>(1 + turn * 7 % kWholeFactor), 1).value();
      const auto one = step(limiter, cell, now, 1 + static_cast<Cost>(turn) % 3);
      if (!one.outcome.allowed) continue;
      ++admitted;
      ASSERT_TRUE(step(whole, cell, now, 1 + static_cast<Cost>(turn) % 3).outcome.allowed) << describe(whole);
      cell = one.next;
    }
    EXPECT_GT(admitted, 20U) << describe(whole);
  }
}

// A scaled burst is at least the rule's cost. Only this can make a bucket admit more than its whole limit.
TEST(Scaled, BucketWithABurstOfTheCostAdmitsAtMostTheDifferenceMore) {
  for (const auto& whole : scalable()) {
    Cell cell;
    EXPECT_EQ(admitted_at_once(whole, cell, kAtFirst), 100U) << describe(whole);
    const bool bucket = gcra_core(whole) != nullptr;
    EXPECT_EQ(admitted_at_once(scaled(whole, 1, 30).value(), cell, kAtFirst), bucket ? 30U - 5U : 0U)
        << "the factor of 5 % alone would leave 5 units: " << describe(whole);
  }
}

TEST(Scaled, QueueStepwiseBucketAndAdaptiveConcurrencyCannotBeScaled) {
  for (const auto& limiter : scalable()) EXPECT_TRUE(can_scale(limiter)) << describe(limiter);
  constexpr Rate kRate{10, Duration{1s}};
  EXPECT_FALSE(can_scale(LeakyBucket::make(kRate, 10, base::kForever).value()));
  EXPECT_FALSE(can_scale(SteppedBucket::make(kRate, 10).value()));
  EXPECT_FALSE(can_scale(AdaptiveConcurrency::make(1, 10).value()));
}

TEST(Factors, GrantTheWholeLimitUntilTheyAreChanged) {
  Factors factors;
  EXPECT_EQ(factors.of(0), kWholeFactor);
  EXPECT_EQ(factors.of(kMaxRules - 1), kWholeFactor);
  factors.set(3, 7);
  EXPECT_EQ(factors.of(3), 7);
  EXPECT_EQ(factors.of(4), kWholeFactor);
}

}  // namespace
}  // namespace weir::limit
