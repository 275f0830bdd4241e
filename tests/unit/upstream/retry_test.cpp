#include "weir/upstream/retry.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using namespace std::chrono_literals;

TEST(RetryBudget, AllowsTheConfiguredPercentageOfRetriesAndAnInitialReserve) {
  RetryBudget budget(20);
  int repeated = 0;
  for (int i = 0; i < 1'000; ++i) {
    budget.pay_in();
    if (budget.take()) ++repeated;
  }
  EXPECT_EQ(repeated,
            // 10 from the initial reserve, and 199 from 20 % of 999 requests. The first request adds nothing,
            // because the reserve is still full.
            209);
}

TEST(RetryBudget, UnusedRetriesAreSavedUpOnlyUpToTheReserve) {
  RetryBudget budget(50);
  for (int i = 0; i < 10'000; ++i) budget.pay_in();
  std::uint64_t taken = 0;
  while (budget.take()) ++taken;
  EXPECT_EQ(taken, RetryBudget::kReserve);
  budget.pay_in();
  EXPECT_FALSE(budget.take());
  budget.pay_in();
  EXPECT_TRUE(budget.take());
}

TEST(RetryBudget, AllowsNoRetriesAtZeroPercent) {
  RetryBudget budget(0);
  budget.pay_in();
  EXPECT_FALSE(budget.take());
}

TEST(Backoff, PauseIsRandomUpToABoundThatDoubles) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  base::Duration bound = 25ms;
  for (const unsigned repetition : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 60U}) {
    base::Duration sum{0};
    base::Duration most{0};
    for (int i = 0; i < 4'000; ++i) {
      const auto wait = backoff(25ms, repetition, random());
      ASSERT_GE(wait, base::Duration{0});
      most = std::max(most, wait);
      sum += wait;
    }
    EXPECT_LE(most, bound) << repetition;
    EXPECT_GT(most, bound * 99 / 100) << repetition;
    EXPECT_NEAR(static_cast<double>(sum.count()) / 4'000, static_cast<double>(bound.count()) / 2,
                static_cast<double>(bound.count()) / 20)
        << repetition;
    bound = std::min<base::Duration>(2 * bound, kLongestBackoff);
  }
  EXPECT_EQ(backoff(0ms, 5, 12'345), base::Duration{0});
}

}  // namespace
}  // namespace weir::upstream
