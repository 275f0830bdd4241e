// A table full of keys in use: which overflow cells new keys share, and what happens when limits refill and
// keys are evicted.
#include "unit/limit/table/key_tables.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <map>
#include <set>
#include <vector>

namespace weir::limit {
namespace {

TEST_F(KeyTableTest, NewKeysInAFullTableShareTheOverflowCellOfTheirRule) {
  KeyTable table(64);
  const auto taken = fill(table, three_);
  EXPECT_GE(taken, 64);
  EXPECT_EQ(table.stats().keys, taken);
  int admitted = 1;  // the overflow cell has admitted the last request of fill()
  for (std::uint64_t i = taken + 1; i < taken + 10'000; ++i) {
    const bool yes = charge(table, {line(i, three_)}, kStart);
    if (outcomes_[0].overflow) admitted += yes ? 1 : 0;
  }
  EXPECT_EQ(admitted, 3) << "new keys got more than the overflow cell holds";
  EXPECT_EQ(table.stats().overflowed, 3);
  EXPECT_TRUE(table.peek(line(99'999, three_), kStart).overflow);
  for (std::uint64_t i = 0; i < taken; ++i)
    EXPECT_EQ(table.peek(line(i, three_), kStart).remaining, 1) << "a key in use was evicted";
}

TEST_F(KeyTableTest, NewKeyTakesTheSlotOfAKeyWhoseLimitHasRefilled) {
  KeyTable table(64);
  const auto taken = fill(table, three_);
  for (std::uint64_t i = 0; i < 16; ++i) {  // no sweep has freed the slots of the refilled keys yet
    ASSERT_TRUE(charge(table, {line(1'000'000 + i, three_)}, kStart + 2h));
    EXPECT_FALSE(outcomes_[0].overflow);
  }
  EXPECT_LE(table.stats().keys, taken + 8) << "slots of unused keys were not reused";
  table.sweep(kStart + 2h, table.stats().slots / 8);
  for (std::uint64_t i = 16; i < 64; ++i) {
    ASSERT_TRUE(charge(table, {line(1'000'000 + i, three_)}, kStart + 2h));
    EXPECT_FALSE(outcomes_[0].overflow);
  }
  EXPECT_EQ(table.stats().keys, 64);
}

// All keys without a slot are charged in one state, the overflow cell. If a key gets a slot later, it must
// not have more units than the overflow cell has left. Otherwise a client could gain a full limit by filling
// the table and waiting.
TEST_F(KeyTableTest, ClientThatFillsTheTableDoesNotRegainItsFullLimit) {
  const Rate five{.count = 5, .period = 24h};
  const std::vector<Limiter> limiters = {token_bucket("5/day", 5),
                                         Gcra::make(five, 5).value(),
                                         FixedWindow::make(five).value(),
                                         SlidingWindow::make(five).value(),
                                         SlidingLog::make(five).value(),
                                         SlidingLog::make(five, 10).value(),
                                         LeakyBucket::make(five, 5, 400h).value()};
  const Limiter filler = token_bucket("1/3s", 1);
  for (std::size_t kind = 0; kind < limiters.size(); ++kind) {
    SCOPED_TRACE(kind);
    KeyTable table(64);
    fill(table, filler);
    const auto asked = line(500'000, limiters[kind], 7);
    int admitted = 0;
    while (charge(table, {asked}, kStart)) {
      ASSERT_TRUE(outcomes_[0].overflow);
      ++admitted;
    }
    ASSERT_GE(admitted, 5);
    const auto free_at = kStart + outcomes_[0].retry_after;
    const auto later = kStart + 4s;  // by now, the limits of the keys that filled the table have refilled
    EXPECT_FALSE(table.peek(asked, later).allowed);
    EXPECT_FALSE(charge(table, {asked}, later)) << "the client got a second limit";
    EXPECT_TRUE(outcomes_[0].overflow) << "the outcome does not name the overflow cell";
    EXPECT_FALSE(charge(table, {asked}, free_at - 1us));
    EXPECT_TRUE(charge(table, {asked}, free_at)) << "the promised time was wrong";
    EXPECT_FALSE(outcomes_[0].overflow) << "the key has a slot";
    EXPECT_TRUE(charge(table, {line(500'001, limiters[kind], 7)}, kStart + 60h))
        << "all keys are unused by then";
    EXPECT_GE(outcomes_[0].remaining, 4U);
  }
}

TEST_F(KeyTableTest, OverflowCellOfTwoTiersIsConvertedToTheUnitsOfEachTier) {
  KeyTable table(64);
  const Limiter slow = token_bucket("2/h", 4);  // this bucket takes two hours to refill
  const Limiter fast = token_bucket("50/s", 50);
  fill(table, one_);
  const auto newcomer = [&](const Limiter& limiter, Cost cost) { return line(500'000, limiter, 5, cost); };
  ASSERT_TRUE(table.peek(newcomer(slow, 1), kStart).overflow);
  ASSERT_TRUE(charge(table, {newcomer(slow, 4)}, kStart));
  EXPECT_FALSE(charge(table, {newcomer(fast, 1)}, kStart)) << "the charge of the slow tier was lost";
  EXPECT_EQ(outcomes_[0].retry_after, 2h - 980ms);
  EXPECT_TRUE(charge(table, {newcomer(fast, 1)}, kStart + 2h));
  EXPECT_EQ(outcomes_[0].remaining, 49);
}

TEST_F(KeyTableTest, RequestIsChargedAndRefundedInOverflowCells) {
  KeyTable table(64);
  fill(table, one_);
  const std::vector<Charge> bill = {line(500'000, three_, 5), line(500'000, three_, 6, 3)};
  ASSERT_TRUE(charge(table, bill, kStart));
  ASSERT_TRUE(outcomes_[0].overflow && outcomes_[1].overflow);
  EXPECT_FALSE(charge(table, bill, kStart));
  EXPECT_EQ(table.peek(bill[0], kStart).remaining, 1) << "a refused request charged the overflow cell";
  table.refund(bill, kStart, std::vector<Outcome>(2, {.allowed = true, .overflow = true}), kStart);
  EXPECT_TRUE(charge(table, bill, kStart));
}

TEST_F(KeyTableTest, TwoLimitersOfARuleInOneRequestHaveSeparateOverflowCells) {
  KeyTable table(64);
  fill(table, one_);
  std::vector<Charge> bill = {line(500'000, three_, 5, 3), line(500'001, three_, 5, 1)};
  bill[1].limiter_id = 1;
  ASSERT_TRUE(table.peek(bill[0], kStart).overflow && table.peek(bill[1], kStart).overflow);
  ASSERT_TRUE(charge(table, bill, kStart));
  EXPECT_FALSE(table.peek(bill[0], kStart).allowed);
  EXPECT_EQ(table.peek(bill[1], kStart).remaining, 1);
}

// A rule may apply to several descriptors of a question, so a bill may have several keys of one limiter.
TEST_F(KeyTableTest, KeysOfOneRequestThatShareAnOverflowCellAreChargedTogether) {
  KeyTable table(64);
  fill(table, one_);
  const std::vector<Charge> two = {line(500'000, three_, 5), line(500'001, three_, 5)};
  ASSERT_TRUE(charge(table, two, kStart));
  ASSERT_TRUE(outcomes_[0].overflow && outcomes_[1].overflow);
  EXPECT_EQ(outcomes_[1].remaining, 1U);
  EXPECT_EQ(table.peek(two[0], kStart).remaining, 0U) << "the cost of the peek is 1";
  EXPECT_FALSE(charge(table, two, kStart)) << "only one unit is left";
  EXPECT_EQ(table.peek(two[0], kStart).remaining, 0U) << "a refused bill charged the overflow cell";
  ASSERT_TRUE(table.peek(two[0], kStart).allowed);
  EXPECT_TRUE(charge(table, {two[0]}, kStart));
  EXPECT_FALSE(charge(table, {two[1]}, kStart));
}

TEST_F(KeyTableTest, TwoKeysOfAnElasticRuleInOneRequestShareTheTwoOverflowCellsOfTheRule) {
  KeyTable table(64);
  fill(table, one_);
  std::vector<Charge> bill;
  for (const std::uint64_t client : {500'000U, 500'001U}) {
    bill.push_back(line(client, three_, 5));
    bill.push_back(line(client + 1000, three_, 5));
    bill.back().limiter_id = 1;
    bill.back().enforced = false;
    bill.back().counted = true;
  }
  ASSERT_TRUE(charge(table, bill, kStart));
  ASSERT_TRUE(outcomes_[0].overflow && outcomes_[3].overflow);
  EXPECT_EQ(outcomes_[2].remaining, 1U);
  EXPECT_EQ(table.peek(bill[1], kStart).remaining, 0U) << "a charge of the odd cell was lost";
}

TEST_F(KeyTableTest, NoChargeOfARequestTakesTheSlotOfAnotherChargeOfTheRequest) {
  const auto seed = new_seed();
  std::mt19937_64 random(seed);
  KeyTable table(8);  // the table is so small that requests evict keys and move other keys
  std::map<std::uint64_t, Cell> model;
  int compared = 0;
  TimePoint now = kStart;
  for (int round = 0; round < 20'000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    now += Duration(random() % 4'000'000'000);
    std::set<std::uint64_t> clients;
    while (clients.size() < 1 + round % 5U) clients.insert(random() % 40);
    std::vector<Charge> bill;
    for (const auto client : clients) bill.push_back(line(client, three_, 0, 1 + random() % 3));
    const bool charged = charge(table, bill, now);
    if (std::ranges::any_of(outcomes_, &Outcome::overflow)) {  // the test's model has no overflow cells
      if (charged) table.refund(bill, now, outcomes_, now);
      continue;
    }
    ++compared;
    std::vector<Step> steps;
    for (const auto client : clients)
      steps.push_back(step(three_, model[client], now, bill[steps.size()].cost));
    ASSERT_EQ(charged, std::ranges::all_of(steps, [](const Step& s) { return s.outcome.allowed; }));
    std::size_t i = 0;
    for (const auto client : clients) {
      ASSERT_EQ(outcomes_[i], steps[i].outcome) << "client " << client;
      if (charged) model[client] = steps[i].next;
      ++i;
    }
  }
  EXPECT_GT(compared, 10'000);
}

}  // namespace
}  // namespace weir::limit
