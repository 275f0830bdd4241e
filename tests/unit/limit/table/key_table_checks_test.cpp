// Tests checks: charges of cost 0, which decide about one unit and charge nothing.
#include "unit/limit/table/key_tables.hpp"

#include "weir/limit/penalty.hpp"
#include "weir/limit/settle.hpp"

namespace weir::limit {
namespace {

class KeyTableChecks : public KeyTableTest {
 protected:
  Outcome check(const Limiter& limiter, TimePoint now = kStart, std::uint64_t client = 1) {
    (void)charge(table_, {line(client, limiter, 0, 0)}, now);
    return outcomes_[0];
  }
  // Charges `units` beyond the limit, as a rule with `overdraft` does.
  void overdraw(const Limiter& limiter, Cost units, std::uint64_t client) {
    table_.settle(line(client, limiter, 0, 0), {kStart, units, kStart});
  }
  static std::vector<Limiter> limiters_of_five() {
    return {token_bucket("5/h", 5),
            gcra("5/h", 4),
            FixedWindow::make({5, 1h}).value(),
            SlidingWindow::make({5, 1h}).value(),
            SlidingLog::make({5, 1h}).value(),
            SlidingLog::make({5, 1h}, 10).value(),
            SteppedBucket::make(rate("5/h"), 5).value()};
  }

  KeyTable table_{1'000};
};

TEST_F(KeyTableChecks, CheckIsRefusedIfNoUnitIsLeftAndChargesNothing) {
  for (const auto& limiter : limiters_of_five()) {
    SCOPED_TRACE(describe(limiter));
    ASSERT_FALSE(table_.forget(key_of(1, 0), kStart));
    for (Cost left = 5; left != 0; --left) {
      for (int i = 0; i < 3; ++i) {
        const auto outcome = check(limiter);
        EXPECT_TRUE(outcome.allowed);
        EXPECT_EQ(outcome.remaining, left);
        EXPECT_EQ(outcome.retry_after, 0us);
      }
      ASSERT_TRUE(charge(table_, {line(1, limiter)}, kStart));
    }
    const auto refused = check(limiter);
    ASSERT_FALSE(charge(table_, {line(1, limiter)}, kStart));
    EXPECT_EQ(refused, outcomes_[0]) << "a check is refused as a charge of one unit is";
    ASSERT_TRUE(table_.forget(key_of(1, 0), kStart));
  }
}

TEST_F(KeyTableChecks, CheckOfAnUnknownKeyTakesNoSlot) {
  for (const auto& limiter : limiters_of_five())
    EXPECT_EQ(check(limiter), full(limiter)) << describe(limiter);
  EXPECT_EQ(table_.stats().keys, 0U);
}

TEST_F(KeyTableChecks, CheckIsRefusedUntilADebtIsPaid) {
  std::uint64_t client = 1;
  for (const auto& limiter : limiters_of_five()) {
    SCOPED_TRACE(describe(limiter));
    ++client;
    overdraw(limiter, 3, client);
    EXPECT_EQ(check(limiter, kStart, client).remaining, 2U);
    overdraw(limiter, 9, client);
    const auto refused = check(limiter, kStart, client);
    EXPECT_FALSE(refused.allowed);
    const auto paid = kStart + refused.retry_after;
    EXPECT_FALSE(check(limiter, paid - 1us, client).allowed);
    EXPECT_TRUE(check(limiter, paid, client).allowed);
  }
}

TEST_F(KeyTableChecks, RefusedCheckRefusesTheWholeRequest) {
  ASSERT_TRUE(charge(table_, {line(1, one_)}, kStart));
  EXPECT_FALSE(charge(table_, {line(1, one_, 0, 0), line(2, three_, 1)}, kStart));
  EXPECT_TRUE(charge(table_, {line(3, one_, 0, 0), line(2, three_, 1)}, kStart));
  EXPECT_EQ(outcomes_[1].remaining, 2U) << "the refused bill charged nothing";
  EXPECT_TRUE(charge(table_, {shadow(line(1, one_, 0, 0)), line(2, three_, 1)}, kStart));
  EXPECT_FALSE(outcomes_[0].allowed);
}

TEST_F(KeyTableChecks, CheckOfAConcurrencyLimitTakesNoPermit) {
  for (const Limiter& limiter :
       {Limiter(Concurrency::make(1).value()), Limiter(AdaptiveConcurrency::make(1, 1).value())}) {
    SCOPED_TRACE(describe(limiter));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(check(limiter).allowed);
      EXPECT_EQ(outcomes_[0].remaining, 1U);
    }
    ASSERT_TRUE(charge(table_, {line(1, limiter)}, kStart));
    EXPECT_FALSE(check(limiter).allowed);
    table_.release(line(1, limiter), kStart, {});
    ASSERT_TRUE(table_.forget(key_of(1, 0), kStart));
  }
}

TEST_F(KeyTableChecks, CheckOfAQueueNeverWaitsAndIsRefusedIfTheQueueIsFull) {
  const Limiter queue = LeakyBucket::make(rate("1/h"), 2, base::kForever).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(check(queue).allowed);
    EXPECT_EQ(outcomes_[0].delay, 0us);
    ASSERT_TRUE(charge(table_, {line(1, queue)}, kStart));
    EXPECT_EQ(outcomes_[0].delay, i * 1h) << "a check takes no departure";
  }
  EXPECT_FALSE(check(queue).allowed);
}

TEST_F(KeyTableChecks, RefusedCheckIsNoViolation) {
  const Penalty second{.after = 2, .first = 2h, .grows = 1, .most = 2h, .forget = 24h};
  const auto with_penalty = [&](Cost cost) {
    auto one = line(1, one_, 0, cost);
    one.penalty = &second;
    return one;
  };
  ASSERT_TRUE(charge(table_, {with_penalty(1)}, kStart));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(charge(table_, {with_penalty(0)}, kStart));
  EXPECT_TRUE(charge(table_, {with_penalty(0)}, kStart + 1h));
  ASSERT_TRUE(charge(table_, {with_penalty(1)}, kStart + 1h));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(charge(table_, {with_penalty(1)}, kStart + 1h));
  EXPECT_FALSE(charge(table_, {with_penalty(0)}, kStart + 2h))
      << "the bucket has a token, but a penalty runs";
  EXPECT_EQ(outcomes_[0].penalty_left, 1h);
}

TEST_F(KeyTableChecks, CheckOfAnElasticRuleChargesNeitherOfTheTwoLimits) {
  const Limiter few = FixedWindow::make({1, 24h}).value(), many = FixedWindow::make({3, 24h}).value();
  const auto pair = [&](Cost cost) {
    auto decides = line(1, few, 0, cost), counts = line(2, many, 0, cost);
    counts.limiter_id = 1;
    counts.counted = true;
    counts.enforced = false;
    return std::vector<Charge>{decides, counts};
  };
  EXPECT_TRUE(charge(table_, pair(0), kStart));
  EXPECT_TRUE(charge(table_, pair(1), kStart));
  EXPECT_EQ(outcomes_[1].remaining, 2U);
  EXPECT_FALSE(charge(table_, pair(0), kStart));
  EXPECT_EQ(table_.peek(line(2, many), kStart).remaining, 1U);
}

// In a full table, new keys share one overflow cell.
TEST_F(KeyTableChecks, CheckOfAKeyWithoutASlotIsDecidedByTheOverflowCell) {
  const auto client = fill(table_, one_);
  EXPECT_FALSE(check(one_, kStart, client).allowed) << "this key found no slot, and has charged the cell";
  EXPECT_TRUE(outcomes_[0].overflow);
  const auto charges = table_.stats().overflowed;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(check(one_, kStart + 1h, client).allowed);
  EXPECT_EQ(table_.stats().overflowed, charges);
}

// A key that had no slot gets one when other keys are evicted. Its slot starts as a copy of the overflow
// cell. An overdraft must then charge this key alone.
TEST_F(KeyTableChecks, OverdraftOfAKeyWhoseSlotBeganAsACopyOfTheOverflowCellChargesNoOtherKey) {
  for (const Limiter& limiter :
       {token_bucket("5/h", 5), gcra("5/h", 4), Limiter(SteppedBucket::make(rate("5/h"), 5).value())}) {
    SCOPED_TRACE(describe(limiter));
    KeyTable table(64);
    fill(table, token_bucket("1/3s", 1));
    ASSERT_TRUE(charge(table, {line(500'000, limiter, 7, 5)}, kStart));
    ASSERT_TRUE(outcomes_[0].overflow);
    const auto later = kStart + 4s;  // the limits of the keys that filled the table have refilled
    const auto check = line(500'001, limiter, 7, 0), other = line(500'002, limiter, 7, 0);
    ASSERT_FALSE(charge(table, {other}, later));
    const auto before = outcomes_[0].retry_after;
    ASSERT_FALSE(charge(table, {check}, later));
    EXPECT_FALSE(outcomes_[0].overflow);
    table.settle(check, {later, 100, later}, outcomes_[0].overflow);
    ASSERT_FALSE(charge(table, {check}, later));
    EXPECT_GT(outcomes_[0].retry_after, before) << "the key has a debt";
    ASSERT_FALSE(charge(table, {other}, later));
    EXPECT_EQ(outcomes_[0].retry_after, before) << "other keys have none";
  }
}

}  // namespace
}  // namespace weir::limit
