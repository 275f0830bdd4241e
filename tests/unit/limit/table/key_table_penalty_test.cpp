// Tests the penalties of keys in the key table.
#include "unit/limit/penalty_oracle.hpp"
#include "unit/limit/table/key_tables.hpp"

namespace weir::limit {
namespace {

class KeyTablePenalty : public KeyTableTest {
 protected:
  Charge with_penalty(std::uint64_t client, const Limiter& limiter, RuleIndex rule = 0) const {
    auto charge = line(client, limiter, rule);
    charge.penalty = &twice_;
    return charge;
  }
  Outcome ask(TimePoint now, std::uint64_t client = 1) {
    (void)charge(table_, {with_penalty(client, one_)}, now);
    return outcomes_[0];
  }

  // Two violations begin a penalty of two hours. The bucket of the tests has one token an hour, so it refuses
  // the second request.
  const Penalty twice_{.after = 2, .first = 2h, .grows = 2, .most = 24h, .forget = 24h};
  KeyTable table_{1'000};
};

TEST_F(KeyTablePenalty, PenaltyRefusesEveryRequestUntilItEnds) {
  EXPECT_TRUE(ask(kStart).allowed);
  const auto first = ask(kStart);
  EXPECT_FALSE(first.allowed);
  EXPECT_EQ(first.violations, 1);
  EXPECT_EQ(first.retry_after, 1h) << "the limiter's own time";
  const auto second = ask(kStart + 1s);
  EXPECT_TRUE(second.penalty_begins);
  EXPECT_EQ(second.retry_after, 2h);
  const auto within = ask(kStart + 90min);
  EXPECT_FALSE(within.allowed) << "the bucket has a token";
  EXPECT_FALSE(within.penalty_begins);
  EXPECT_EQ(within.retry_after, 2h + 1s - 90min) << "a refusal in a penalty extends nothing";
  EXPECT_TRUE(ask(kStart + 1s + 2h).allowed);
}

TEST_F(KeyTablePenalty, SecondPenaltyIsLonger) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart);
  for (int i = 0; i < 2; ++i) (void)ask(kStart + 2h);
  EXPECT_EQ(outcomes_[0].violations, 1) << "the violations of the first penalty are used up";
  EXPECT_EQ(ask(kStart + 2h).retry_after, 4h);
}

// In a full table, new keys share one overflow cell. A refusal by this cell is no violation of a single
// client.
TEST_F(KeyTablePenalty, RefusalByAnOverflowCellCountsNoViolation) {
  const Penalty once{.after = 1, .first = 2h, .grows = 1, .most = 24h, .forget = 24h};
  std::size_t refused = 0;
  for (std::uint64_t client = 0; client < 20'000; ++client) {
    auto one = line(client, one_);
    one.penalty = &once;
    if (charge(table_, {one}, kStart)) continue;
    ++refused;
    EXPECT_TRUE(outcomes_[0].overflow);
  }
  EXPECT_GT(refused, 1'000U);
  EXPECT_TRUE(table_.penalties(kStart).empty());
}

TEST_F(KeyTablePenalty, RequestRefusedForAPenaltyIsNotChargedByAnotherRule) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart);
  EXPECT_FALSE(charge(table_, {with_penalty(1, one_), line(1, three_, 1)}, kStart + 90min));
  EXPECT_TRUE(outcomes_[1].allowed);
  ASSERT_TRUE(charge(table_, {line(1, three_, 1)}, kStart + 90min));
  EXPECT_EQ(outcomes_[0].remaining, 2);
}

TEST_F(KeyTablePenalty, RefusalByAnotherRuleCountsNoViolation) {
  (void)charge(table_, {line(1, one_, 1)}, kStart);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(charge(table_, {with_penalty(1, one_), line(1, one_, 1)}, kStart));
    EXPECT_TRUE(outcomes_[0].allowed);
    EXPECT_EQ(outcomes_[0].violations, 0);
  }
}

TEST_F(KeyTablePenalty, ViolationCountsEvenIfAnotherRuleAlsoRefusesTheRequest) {
  (void)charge(table_, {with_penalty(1, one_), line(1, one_, 1)}, kStart);
  EXPECT_FALSE(charge(table_, {with_penalty(1, one_), line(1, one_, 1)}, kStart));
  EXPECT_EQ(outcomes_[0].violations, 1);
}

TEST_F(KeyTablePenalty, ShadowRuleCountsViolationsButRefusesNothing) {
  const auto ask_shadow = [&](TimePoint now) {
    EXPECT_TRUE(charge(table_, {shadow(with_penalty(1, one_)), line(1, three_, 1)}, now));
  };
  for (int i = 0; i < 3; ++i) ask_shadow(kStart);
  EXPECT_TRUE(outcomes_[0].penalty_begins);
  ask_shadow(kStart + 90min);
  EXPECT_EQ(outcomes_[0].penalty_left, 30min);
  EXPECT_TRUE(charge(table_, {line(1, one_)}, kStart + 90min))
      << "the shadow rule charged nothing in between";
}

TEST_F(KeyTablePenalty, PeekingAtAKeyCountsNoViolation) {
  (void)ask(kStart);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(table_.peek(with_penalty(1, one_), kStart).violations, 0);
  for (int i = 0; i < 2; ++i) (void)ask(kStart);
  const auto seen = table_.peek(with_penalty(1, one_), kStart + 1h);
  EXPECT_FALSE(seen.allowed);
  EXPECT_EQ(seen.penalty_left, 1h);
}

TEST_F(KeyTablePenalty, ResetOfAKeyEndsItsPenalty) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart);
  EXPECT_TRUE(table_.has_state(key_of(1)));
  EXPECT_TRUE(table_.forget(key_of(1), kStart + 1s));
  EXPECT_TRUE(ask(kStart + 2s).allowed);
  EXPECT_EQ(table_.penalties(kStart + 2s).size(), 0);
}

TEST_F(KeyTablePenalty, PenaltyContinuesAfterItsKeyHasLeftTheTable) {
  for (int i = 0; i < 3; ++i) (void)ask(kStart);
  (void)table_.sweep(kStart + 90min, 1'000'000);
  EXPECT_EQ(table_.stats().keys, 0) << "the bucket is full again";
  EXPECT_EQ(table_.stats().penalty_keys, 1);
  EXPECT_TRUE(table_.has_state(key_of(1)));
  EXPECT_FALSE(ask(kStart + 90min).allowed);
  (void)table_.sweep(kStart + 24h, 1'000'000);
  EXPECT_EQ(table_.stats().penalty_keys, 0);
}

TEST_F(KeyTablePenalty, FullQueueCountsNoViolationIfTheRequestMayDisplaceAnother) {
  const Limiter queue = *LeakyBucket::make({1, 1h}, 0, base::kForever);
  std::array<Outcome, 1> outcome;
  const std::array bill{with_penalty(1, queue)};
  const auto ask_queue = [&](Violations noted) {
    return table_.charge(bill, kStart, outcome, nullptr, noted);
  };
  EXPECT_TRUE(ask_queue(Violations::ButFullQueues));
  EXPECT_FALSE(ask_queue(Violations::ButFullQueues));
  EXPECT_EQ(outcome[0].violations, 0);
  EXPECT_FALSE(ask_queue(Violations::All));
  EXPECT_EQ(outcome[0].violations, 1);
  EXPECT_FALSE(ask_queue(Violations::ButFullQueues));
  table_.violate(bill[0], kStart, outcome[0]);
  EXPECT_TRUE(outcome[0].penalty_begins);
  EXPECT_EQ(outcome[0].retry_after, 2h);
}

TEST_F(KeyTablePenalty, PenaltyAlsoRefusesRequestsWhoseViolationsAreNotCounted) {
  std::array<Outcome, 1> outcome;
  const std::array bill{with_penalty(1, one_)};
  const auto ask_again = [&](TimePoint now) {
    return table_.charge(bill, now, outcome, nullptr, Violations::None);
  };
  EXPECT_TRUE(ask_again(kStart));
  EXPECT_FALSE(ask_again(kStart));
  EXPECT_EQ(outcome[0].violations, 0);
  for (int i = 0; i < 2; ++i) (void)ask(kStart);
  EXPECT_FALSE(ask_again(kStart + 90min));
  EXPECT_EQ(outcome[0].penalty_left, 30min);
}

// A key that finds a slot starts with a copy of the overflow cell, which has charges of other keys. So a
// refusal of the new key is no violation of that key.
TEST_F(KeyTablePenalty, RefusalOfAKeyWhoseSlotBeganAsACopyOfTheOverflowCellCountsNoViolation) {
  const auto clients = fill(table_, one_);
  while (charge(table_, {line(clients, one_)}, kStart)) {
  }
  EXPECT_TRUE(outcomes_[0].overflow);
  std::uint64_t client = 0;
  while (!table_.forget(key_of(client), kStart)) ++client;
  auto seen = table_.peek(with_penalty(client, one_), kStart);
  EXPECT_FALSE(seen.allowed);
  EXPECT_TRUE(seen.overflow);
  table_.violate(with_penalty(client, one_), kStart, seen);
  EXPECT_TRUE(table_.penalties(kStart).empty());
}

TEST_F(KeyTablePenalty, FloodOfPenaltiesOfOneRuleLeavesRoomForPenaltiesOfOtherRules) {
  KeyTable table(100'000);
  std::uint64_t client = 0;
  const auto violate = [&](RuleIndex rule) {
    const std::array bill{with_penalty(++client, one_, rule)};
    std::array<Outcome, 1> outcome;
    for (int i = 0; i < 2; ++i) (void)table.charge(bill, kStart, outcome);
    return outcome[0].violations == 1;
  };
  while (violate(0)) ASSERT_LT(client, 100'000U);
  EXPECT_EQ(table.stats().violations_lost, 1);
  EXPECT_GT(table.stats().penalty_keys, 1'000U);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(violate(1));
  (void)table.sweep(kStart + 24h, 1'000'000);
  EXPECT_EQ(table.stats().penalty_keys, 0);
}

// A search through the full memory takes long and holds the lock of the shard, so it must be rare.
TEST_F(KeyTablePenalty, FullPenaltyMemoryIsSearchedForExpiredEntriesAtMostOnceASecond) {
  const Penalty brief{.after = 2, .first = 2h, .grows = 1, .most = 24h, .forget = 10s};
  KeyTable table(1'000);
  std::uint64_t client = 100;
  const auto violate = [&](TimePoint now) {
    auto charge = with_penalty(++client, one_);
    charge.penalty = &brief;
    Outcome outcome{.allowed = false};
    table.violate(charge, now, outcome);
    return outcome.violations == 1;
  };
  while (violate(kStart)) ASSERT_LT(client, 100'000U);
  EXPECT_FALSE(violate(kStart + 9'500ms));
  EXPECT_FALSE(violate(kStart + 10s)) << "the memory was searched half a second ago";
  EXPECT_TRUE(violate(kStart + 10'500ms));
  EXPECT_EQ(table.stats().penalty_keys, 1);
}

TEST_F(KeyTablePenalty, RandomHistoriesAgreeWithAModel) {
  const auto seed = new_seed();
  Dice dice(seed);
  KeyTable table(100'000);
  std::size_t penalties = 0;
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    PenaltyHistory history(dice, number);
    auto now = kStart + number * 1h;
    for (int i = 0; i < 20; ++i, now += history.pause()) {
      const auto request = history.ask(now);
      std::vector<Charge> bill;
      for (const auto& line : request.lines) bill.push_back(line.charge);
      EXPECT_EQ(charge(table, bill, now), request.admitted);
      for (std::size_t line = 0; line < bill.size(); ++line)
        EXPECT_EQ(outcomes_[line], request.lines[line].expected) << "rule " << bill[line].rule;
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", history " << number << ", request " << i;
    }
    penalties += history.penalties();
    if (number % 100 == 0) (void)table.sweep(now, 1'000'000);
  }
  EXPECT_GT(penalties, 10'000U);
  EXPECT_EQ(table.stats().violations_lost, 0);
}

}  // namespace
}  // namespace weir::limit
