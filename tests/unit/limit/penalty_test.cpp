#include "weir/limit/penalty.hpp"

#include "unit/limit/penalty_oracle.hpp"

namespace weir::limit {
namespace {

// Returns a penalty of ten minutes that begins with `after` violations. Further penalties are `grows` times
// as long as the one before, up to a day. Violations are forgotten after a day.
Penalty ten_minutes(std::uint32_t after, std::uint32_t grows = 2) {
  return {.after = after, .first = 10min, .grows = grows, .most = 24h, .forget = 24h};
}

TEST(Penalty, BeginsWithTheConfiguredNumberOfViolations) {
  PenaltyState state;
  EXPECT_FALSE(violate(ten_minutes(3), state, kStart));
  EXPECT_FALSE(violate(ten_minutes(3), state, kStart + 1s));
  EXPECT_EQ(violations_at(ten_minutes(3), state, kStart + 1s), 2);
  EXPECT_TRUE(violate(ten_minutes(3), state, kStart + 2s));
  EXPECT_EQ(penalty_left(state, kStart + 2s), 10min);
  EXPECT_EQ(penalty_left(state, kStart + 2s + 10min - 1us), 1us);
  EXPECT_EQ(penalty_left(state, kStart + 2s + 10min), 0us);
}

TEST(Penalty, ViolationsAreForgottenAfterTheConfiguredTime) {
  PenaltyState state;
  EXPECT_FALSE(violate(ten_minutes(2), state, kStart));
  EXPECT_EQ(violations_at(ten_minutes(2), state, kStart + 24h - 1us), 1);
  EXPECT_EQ(violations_at(ten_minutes(2), state, kStart + 24h), 0);
  EXPECT_FALSE(violate(ten_minutes(2), state, kStart + 24h)) << "the first violation counts no more";
  EXPECT_TRUE(violate(ten_minutes(2), state, kStart + 48h - 1us));
}

TEST(Penalty, EachViolationCountsTowardsOnlyOnePenalty) {
  PenaltyState state;
  (void)violate(ten_minutes(2), state, kStart);
  EXPECT_TRUE(violate(ten_minutes(2), state, kStart));
  EXPECT_FALSE(violate(ten_minutes(2), state, kStart + 10min));
  EXPECT_TRUE(violate(ten_minutes(2), state, kStart + 11min));
}

TEST(Penalty, EachFurtherPenaltyIsLongerUpToTheMaximum) {
  EXPECT_EQ(length_of(ten_minutes(1), 0), 10min);
  EXPECT_EQ(length_of(ten_minutes(1), 1), 20min);
  EXPECT_EQ(length_of(ten_minutes(1), 7), 1'280min);
  EXPECT_EQ(length_of(ten_minutes(1), 8), 24h);
  EXPECT_EQ(length_of(ten_minutes(1), 1'000'000), 24h);
  EXPECT_EQ(length_of(ten_minutes(1, 1), 1'000'000), 10min);
  EXPECT_EQ(
      length_of({.after = 1, .first = 1s, .grows = kMostGrowth, .most = kMostPenalty, .forget = 1s}, 99),
      kMostPenalty);
}

TEST(Penalty, NumberOfStoredViolationsAndPenaltiesIsBounded) {
  EXPECT_EQ(begins_kept(ten_minutes(1)), 8);
  EXPECT_EQ(begins_kept(ten_minutes(1, 1)), 0);
  const Penalty longest{.after = kMostViolations,
                        .first = kLeastPenalty,
                        .grows = 2,
                        .most = kMostPenalty,
                        .forget = kMostPenalty};
  EXPECT_EQ(begins_kept(longest), 25);
  PenaltyState state;
  auto now = kStart;
  for (int i = 0; i < 10'000; ++i, now += 1s) {
    now += penalty_left(state, now);
    (void)violate(longest, state, now);
    ASSERT_LT(state.violations.size(), kMostViolations);
    ASSERT_LE(state.begins.size(), 25U);
  }
}

TEST(Penalty, StateIsForgottenOnceNoViolationAndNoPenaltyCountsAnyMore) {
  PenaltyState state;
  (void)violate(ten_minutes(2), state, kStart);
  EXPECT_EQ(penalty_forgotten_at(ten_minutes(2), state), kStart + 24h);
  (void)violate(ten_minutes(2), state, kStart + 1h);
  EXPECT_EQ(penalty_forgotten_at(ten_minutes(2), state), kStart + 25h)
      << "the beginning of the penalty counts for a day";
  state.begins.clear();
  EXPECT_EQ(penalty_forgotten_at(ten_minutes(2), state), kStart + 1h + 10min);
}

TEST(Penalty, RetryAfterIsTheLongerOfThePenaltyAndTheWaitForTheLimiter) {
  Outcome outcome{.allowed = true, .remaining = 5, .more_after = 1s};
  refuse_by_penalty(outcome, 10min);
  EXPECT_FALSE(outcome.allowed);
  EXPECT_EQ(outcome.remaining, 0);
  EXPECT_EQ(outcome.retry_after, 10min);
  EXPECT_EQ(outcome.more_after, 10min);
  EXPECT_EQ(outcome.reset_after, 10min);
  Outcome longer{.retry_after = 1h, .reset_after = 2h, .more_after = 1h};
  refuse_by_penalty(longer, 10min);
  EXPECT_EQ(longer.retry_after, 1h);
  EXPECT_EQ(longer.reset_after, 2h);
}

TEST(Penalty, RandomHistoriesAgreeWithAModel) {
  const auto seed = new_seed();
  Dice dice(seed);
  std::size_t penalties = 0;
  for (int history = 0; history < 10'000; ++history) {
    const auto penalty = any_penalty(dice);
    PenaltyOracle oracle(penalty);
    PenaltyState state;
    auto now = kStart;
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(penalty_left(state, now), oracle.left(now)) << "seed " << seed << ", history " << history;
      if (penalty_left(state, now) == 0us) {
        ASSERT_EQ(violate(penalty, state, now), oracle.refused_by_limiter(now))
            << "seed " << seed << ", history " << history;
      }
      now += dice.one_in(3) ? penalty.first : Duration(dice.between(0, 20'000'000));
    }
    penalties += oracle.penalties();
  }
  EXPECT_GT(penalties, 10'000U);
}

}  // namespace
}  // namespace weir::limit
