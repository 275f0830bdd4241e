#include "weir/limit/key_table.hpp"

#include "unit/limit/table/key_tables.hpp"
#include "unit/limit/traffic.hpp"

#include <vector>

namespace weir::limit {
namespace {

TEST_F(KeyTableTest, ResetRestoresTheFullLimitOfAKey) {
  KeyTable table(100);
  EXPECT_FALSE(table.forget(key_of(1, 0), kStart));
  ASSERT_TRUE(charge(table, {line(1, one_)}, kStart));
  ASSERT_TRUE(charge(table, {line(2, one_)}, kStart));
  EXPECT_TRUE(table.forget(key_of(1, 0), kStart));
  EXPECT_EQ(table.stats().keys, 1U);
  EXPECT_TRUE(charge(table, {line(1, one_)}, kStart));
  EXPECT_FALSE(charge(table, {line(2, one_)}, kStart)) << "another key keeps its state";
}

TEST_F(KeyTableTest, TimestampOfAResetIsBetweenThoseOfEarlierAndLaterCharges) {
  KeyTable table(100);
  HybridTimestamp charged = 0, forgotten = 0, charged_anew = 0;
  const Charge bill[] = {line(1, one_)};
  outcomes_.assign(1, {});
  ASSERT_TRUE(table.charge(bill, kStart, outcomes_, &charged));
  EXPECT_TRUE(table.forget(key_of(1, 0), kStart, &forgotten));
  ASSERT_TRUE(table.charge(bill, kStart, outcomes_, &charged_anew));
  EXPECT_LT(charged, forgotten);
  EXPECT_LT(forgotten, charged_anew);
}

// A charge is refunded after its key was reset. The client must not gain by the refund.
TEST_F(KeyTableTest, RefundAfterAResetDoesNotExceedTheLimit) {
  KeyTable table(100);
  ASSERT_TRUE(charge(table, {line(1, three_)}, kStart));
  EXPECT_TRUE(table.forget(key_of(1, 0), kStart));
  (void)table.refund(line(1, three_), kStart, kStart);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(charge(table, {line(1, three_)}, kStart));
  EXPECT_FALSE(charge(table, {line(1, three_)}, kStart));
}

// The limit is five. Four requests are in progress, the key is reset, and five more requests are charged.
// Refunds and settlements of the first four requests must then have no effect.
TEST_F(KeyTableTest, ChargesBeforeAResetAreNeitherRefundedNorSettled) {
  const Limiter limiters[] = {token_bucket("5/day", 5),
                              gcra("5/day", 4),
                              FixedWindow::make({5, 24h}).value(),
                              SlidingWindow::make({5, 24h}).value(),
                              SlidingLog::make({5, 24h}).value(),
                              SteppedBucket::make(rate("5/day"), 5).value()};
  for (const auto& limiter : limiters) {
    SCOPED_TRACE(describe(limiter));
    KeyTable table(100);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(charge(table, {line(1, limiter)}, kStart));
    ASSERT_TRUE(table.forget(key_of(1, 0), kStart + 1s));
    EXPECT_FALSE(table.refund(line(1, limiter), kStart, kStart + 1s)) << "the key is not in the table";
    table.settle(line(1, limiter), {kStart, 3, kStart + 1s});
    EXPECT_FALSE(table.has_state(key_of(1, 0)));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(charge(table, {line(1, limiter)}, kStart + 2s));
    EXPECT_FALSE(table.refund(line(1, limiter), kStart, kStart + 3s));
    table.settle(line(1, limiter), {kStart, 0, kStart + 3s});
    EXPECT_FALSE(charge(table, {line(1, limiter)}, kStart + 4s));
    EXPECT_TRUE(table.refund(line(1, limiter), kStart + 2s, kStart + 4s))
        << "the charge was made after the reset";
    EXPECT_TRUE(charge(table, {line(1, limiter)}, kStart + 4s));
  }
}

TEST_F(KeyTableTest, ResetAffectsOneKeyOnly) {
  KeyTable table(100);
  const Limiter daily = FixedWindow::make({5, 24h}).value();
  for (std::uint64_t client = 1; client <= 2; ++client)
    ASSERT_TRUE(charge(table, {line(client, daily)}, kStart));
  table.forget(key_of(1, 0), kStart + 1s);
  EXPECT_TRUE(table.refund(line(2, daily), kStart, kStart + 2s));
}

// The table remembers a bounded number of resets. If more keys are reset while one request is in progress,
// the table treats these resets as a reset of all keys.
TEST_F(KeyTableTest, ChargeBeforeVeryManyResetsIsNotRefunded) {
  KeyTable table(10'000);
  const Limiter daily = FixedWindow::make({5, 24h}).value();
  for (std::uint64_t client = 0; client < 3'000; ++client)
    ASSERT_TRUE(charge(table, {line(client, daily)}, kStart));
  for (std::uint64_t client = 0; client < 2'000; ++client)
    ASSERT_TRUE(table.forget(key_of(client, 0), kStart + 1s));
  for (std::uint64_t client = 0; client < 2'000; ++client) {
    ASSERT_TRUE(charge(table, {line(client, daily)}, kStart + 2s));
    ASSERT_FALSE(table.refund(line(client, daily), kStart, kStart + 3s)) << client;
    ASSERT_TRUE(table.refund(line(client, daily), kStart + 2s, kStart + 3s)) << client;
  }
}

// A worker reads its clock. Before this worker gets the lock, another worker evicts the key. By then the day
// is over, so the first worker's charge belongs to the next day.
TEST_F(KeyTableTest, RequestWhoseTimePrecedesTheEvictionOfItsKeyIsChargedToTheNextPeriod) {
  const Limiter daily = FixedWindow::make({5, 24h}).value();
  const Limiter log = SlidingLog::make({5, 24h}).value();
  for (const auto* limiter : {&daily, &log})
    for (const bool swept : {true, false}) {
      SCOPED_TRACE(describe(*limiter) + (swept ? ", swept" : ", in a newcomer's way"));
      KeyTable table(64);
      const auto full = line(1'000'000, *limiter, 0, 5);
      ASSERT_TRUE(charge(table, {full}, kStart));
      const auto over = kStart + table.peek(full, kStart).retry_after;
      if (swept)
        EXPECT_GT(table.sweep(over, table.stats().slots / 8), 0);
      else
        for (std::uint64_t client = 0; table.has_state(full.key); ++client)
          charge(table, {line(client, *limiter)}, over);
      ASSERT_TRUE(charge(table, {full}, over - 1us)) << "the key is unused by now";
      EXPECT_FALSE(charge(table, {line(1'000'000, *limiter)}, over)) << "the next period began empty";
    }
}

// The table charges a key that may have been evicted no earlier than at the eviction. Queues are an
// exception: they compute the departure from the request's own time. The refund must find this departure.
TEST_F(KeyTableTest, DepartureIsRefundedEvenIfTheTimeOfItsRequestPrecedesTheEvictionOfTheKey) {
  KeyTable table(64);
  const Limiter queue = leaky_bucket("1/s", 4);
  ASSERT_TRUE(charge(table, {line(1, queue)}, kStart));
  ASSERT_EQ(table.sweep(kStart + 1s, table.stats().slots / 8), 1);
  ASSERT_TRUE(charge(table, {line(1, queue)}, kStart + 1s - 1us));
  EXPECT_EQ(outcomes_[0].delay, 0us);
  EXPECT_TRUE(table.refund(line(1, queue), kStart + 1s - 1us, kStart + 1s));
}

TEST_F(KeyTableTest, KeyThatIsNotInTheTableHasItsFullLimit) {
  KeyTable table(100);
  EXPECT_EQ(table.peek(line(1, three_), kStart), step(three_, Cell{}, kStart, 1).outcome);
  EXPECT_TRUE(charge(table, {line(1, three_)}, kStart));
  EXPECT_EQ(outcomes_[0].remaining, 2);
  EXPECT_EQ(table.stats().keys, 1);
}

TEST_F(KeyTableTest, KeysHaveSeparateStates) {
  KeyTable table(100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(charge(table, {line(1, three_)}, kStart));
  EXPECT_FALSE(charge(table, {line(1, three_)}, kStart));
  EXPECT_EQ(outcomes_[0].retry_after, 1h);
  EXPECT_TRUE(charge(table, {line(2, three_)}, kStart));
  EXPECT_FALSE(charge(table, {line(1, three_)}, kStart + 1h - 1us));
  EXPECT_TRUE(charge(table, {line(1, three_)}, kStart + 1h));
}

TEST_F(KeyTableTest, PeekingAtAKeyChargesNothing) {
  KeyTable table(100);
  charge(table, {line(1, three_)}, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(table.peek(line(1, three_), kStart).remaining, 1);
  EXPECT_EQ(table.stats().keys, 1);
}

TEST_F(KeyTableTest, RejectionByOneRuleChargesNoRule) {
  KeyTable table(100);
  const Limiter queue = leaky_bucket("1/s", 4);
  EXPECT_TRUE(charge(table, {line(1, one_, 0)}, kStart));
  const std::vector<Charge> bill = {line(1, three_, 1), line(1, one_, 0), line(1, queue, 2),
                                    line(1, three_, 3, 2)};
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(charge(table, bill, kStart));
    EXPECT_TRUE(outcomes_[0].allowed);
    EXPECT_FALSE(outcomes_[1].allowed);
    EXPECT_TRUE(outcomes_[2].allowed);
    EXPECT_TRUE(outcomes_[3].allowed);
  }
  EXPECT_EQ(table.stats().keys, 1) << "a refused request took a slot";
  EXPECT_EQ(table.peek(line(1, three_, 1), kStart).remaining, 2);
  EXPECT_EQ(table.peek(line(1, queue, 2), kStart).delay, 0us);
  EXPECT_TRUE(charge(table, bill, kStart + 1h));
  EXPECT_EQ(outcomes_[3].remaining, 1);
  EXPECT_EQ(table.stats().keys, 4);
}

TEST_F(KeyTableTest, RejectedNewKeyTakesNoSlot) {
  KeyTable table(100);
  EXPECT_FALSE(charge(table, {line(1, three_, 0, 4)}, kStart));
  EXPECT_EQ(outcomes_[0].retry_after, base::kForever);
  EXPECT_EQ(table.stats().keys, 0);
}

TEST_F(KeyTableTest, ShadowRuleThatWouldRejectARequestNeitherRejectsItNorIsCharged) {
  KeyTable table(100);
  const std::vector<Charge> bill = {shadow(line(1, one_, 0)), line(1, three_, 1)};
  EXPECT_TRUE(charge(table, bill, kStart));
  EXPECT_TRUE(outcomes_[0].allowed);
  EXPECT_TRUE(charge(table, bill, kStart + 30min));
  EXPECT_FALSE(outcomes_[0].allowed);
  EXPECT_TRUE(charge(table, bill, kStart + 1h)) << "a refusal by the shadow rule changed its state";
  EXPECT_TRUE(outcomes_[0].allowed);
  EXPECT_FALSE(charge(table, {shadow(line(1, three_, 2)), line(1, three_, 3, 9)}, kStart + 1h));
  EXPECT_EQ(table.stats().keys, 2) << "a shadow rule was charged for a refused request";
  EXPECT_TRUE(charge(table, {shadow(line(1, three_, 4, 9)), line(1, three_, 5)}, kStart + 1h));
  EXPECT_EQ(table.stats().keys, 3) << "a shadow rule that would refuse took a slot";
}

TEST_F(KeyTableTest, RefundRestoresTheStateOfEveryRule) {
  KeyTable table(100);
  const Limiter queue = leaky_bucket("1/s", 4);
  const std::vector<Charge> bill = {line(1, one_, 0), line(1, queue, 1)};
  charge(table, {line(1, queue, 1)}, kStart);
  ASSERT_TRUE(charge(table, bill, kStart));
  EXPECT_EQ(outcomes_[1].delay, 1s);
  table.refund(bill, kStart, outcomes_, kStart);
  ASSERT_TRUE(charge(table, bill, kStart));
  EXPECT_EQ(outcomes_[1].delay, 1s);
}

TEST_F(KeyTableTest, RefundOfAnEvictedKeyChangesNothing) {
  KeyTable table(100);
  table.refund(line(1, one_), kStart, kStart);
  EXPECT_EQ(table.stats().keys, 0);
}

TEST_F(KeyTableTest, SweepEvictsOnlyKeysWhoseLimitHasRefilled) {
  KeyTable table(10'000);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    charge(table, {line(i, three_, 3)}, kStart);
    charge(table, {line(i, three_, 4, 3)}, kStart);
  }
  const auto slots = table.stats().slots;
  EXPECT_EQ(table.sweep(kStart + 1h - 1us, slots), 0);
  std::size_t forgotten = 0;
  for (std::size_t hand = 0; hand < slots / 8; hand += 10) forgotten += table.sweep(kStart + 1h, 10);
  EXPECT_EQ(forgotten, 5'000);
  const auto stats = table.stats();
  EXPECT_EQ(stats.keys, 5'000);
  EXPECT_EQ(stats.keys_by_rule[3], 0);
  EXPECT_EQ(stats.keys_by_rule[4], 5'000);
  EXPECT_EQ(table.peek(line(7, three_, 4), kStart + 1h).remaining, 0) << "a key in use was evicted";
}

TEST_F(KeyTableTest, TableHasRoomForAsManyKeysAsMaxKeysAllows) {
  for (const std::uint64_t keys : {1, 2, 8, 9, 16, 100, 1'000, 5'000, 100'000}) {
    KeyTable table(keys);
    for (std::uint64_t i = 0; i < keys; ++i) charge(table, {line(i, one_)}, kStart);
    EXPECT_EQ(table.stats().overflowed, 0) << keys << " keys";
    EXPECT_EQ(table.stats().keys, keys);
    for (std::uint64_t i = 0; i < keys; ++i)
      ASSERT_FALSE(table.peek(line(i, one_), kStart).allowed) << "key " << i << " of " << keys << " was lost";
  }
}

}  // namespace
}  // namespace weir::limit
