// Examples of settling (correcting a charge when its actual cost is known): which units are refunded, which
// are owed, and which log entry or window changes.
#include "weir/limit/settle.hpp"

#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"

#include <thread>

namespace weir::limit {
namespace {

// A key table. By default, charge() charges key 1 at kStart, and settle() settles this charge.
class Settling : public testing::Test {
 protected:
  bool charge(const Limiter& limiter, Cost cost, TimePoint at = kStart, std::uint64_t key = 1) {
    const Charge one[] = {{key_of(key), &limiter, cost}};
    Outcome outcomes[1];
    const bool charged = table_.charge(one, at, outcomes);
    overflow_ = outcomes[0].overflow;
    return charged;
  }
  void settle(const Limiter& limiter, Cost reserved, Cost actual, TimePoint at = kStart, Duration later = 1s,
              std::uint64_t key = 1) {
    table_.settle({key_of(key), &limiter, reserved}, {at, actual, at + later}, overflow_);
  }
  Outcome current_outcome(const Limiter& limiter, TimePoint at, std::uint64_t key = 1) {
    return table_.current_outcome({key_of(key), &limiter}, at, overflow_);
  }

  KeyTable table_{1000};
  bool overflow_ = false;
};

TEST_F(Settling, UnusedPartOfTheReservedCostIsRefunded) {
  const auto budget = token_bucket("200000/day", 200'000);
  ASSERT_TRUE(charge(budget, 1'000));
  EXPECT_EQ(current_outcome(budget, kStart).remaining, 199'000U);
  settle(budget, 1'000, 250);
  EXPECT_EQ(current_outcome(budget, kStart).remaining, 199'750U);
}

TEST_F(Settling, ActualCostBeyondTheLimitLengthensRetryAfter) {
  const auto budget = token_bucket("10/s", 100);
  ASSERT_TRUE(charge(budget, 50));
  settle(budget, 50, 350);
  const auto now = current_outcome(budget, kStart);
  EXPECT_EQ(now.remaining, 0U);
  EXPECT_EQ(now.retry_after, 25'100ms) << "250 units beyond the capacity, and one more, at 10 a second";
  EXPECT_EQ(now.more_after, 25'100ms);
  EXPECT_EQ(now.reset_after, 35s);
  EXPECT_FALSE(charge(budget, 1, kStart + now.retry_after - 1us));
  EXPECT_TRUE(charge(budget, 1, kStart + now.retry_after));
}

TEST_F(Settling, UnitsOwedInAFixedWindowExpireWithTheWindow) {
  const Limiter daily = FixedWindow::make(rate("100/day")).value();
  const TimePoint noon{Duration{1'700'000'000'000'000 / 86'400'000'000 * 86'400'000'000} + 12h};
  ASSERT_TRUE(charge(daily, 10, noon));
  settle(daily, 10, 5'000, noon);
  EXPECT_EQ(current_outcome(daily, noon).retry_after, 12h);
  EXPECT_EQ(current_outcome(daily, noon + 12h).remaining, 100U);
}

// The settled cost of 300 exceeds the limit of 100. In the next window, the weight of this cost falls from 1
// to 0. After 40 minutes, 300 × ⅓ = 100 units still count, so no unit is left. After 48 minutes, 300 × ⅕ = 60
// units count.
TEST_F(Settling, UnitsOwedInASlidingWindowStillCountInTheNextWindow) {
  const Limiter hourly = SlidingWindow::make(rate("100/h")).value();
  const TimePoint hour{Duration{1'700'000'000'000'000 / 3'600'000'000 * 3'600'000'000}};
  ASSERT_TRUE(charge(hourly, 1, hour));
  settle(hourly, 1, 300, hour);
  EXPECT_EQ(current_outcome(hourly, hour + 1h).remaining, 0U);
  EXPECT_EQ(current_outcome(hourly, hour + 1h + 40min).remaining, 0U);
  EXPECT_EQ(current_outcome(hourly, hour + 1h + 48min).remaining, 40U);
}

TEST_F(Settling, KeyThatLeftTheTableIsStillChargedItsHigherActualCost) {
  const auto budget = token_bucket("10/s", 10);
  ASSERT_TRUE(charge(budget, 10));
  const auto later = kStart + 5s;
  while (table_.stats().keys != 0) table_.sweep(later, 1'000);
  settle(budget, 10, 100, kStart, 5s);
  EXPECT_EQ(table_.stats().keys, 1U);
  EXPECT_EQ(current_outcome(budget, later).reset_after, 5s)
      << "a debt of ten seconds from the time of the charge";
  while (table_.stats().keys != 0) table_.sweep(later + 5s, 1'000);
  settle(budget, 10, 100, kStart, 10s);
  EXPECT_EQ(table_.stats().keys, 0U) << "the debt is paid, so no slot is taken";
}

// While a request is in progress, other keys fill the table, and time refills the limit of the request's key.
// So the key can be evicted.
class SettlingOverflow : public Settling {
 protected:
  static constexpr std::uint64_t kFillers = 1'000'000;

  void fill() {
    for (std::uint64_t i = 0; !overflow_; ++i) ASSERT_TRUE(charge_by_day(i));
    overflow_ = false;
  }
  bool charge_by_day(std::uint64_t number) {
    const Charge one[] = {{key_of(kFillers + number), &daily_, 1, 1}};
    Outcome outcomes[1];
    const bool charged = table_.charge(one, kStart + 5s, outcomes);
    overflow_ = outcomes[0].overflow;
    return charged;
  }
  // Charges ten units to the overflow cell (the state that keys without a slot share), for a key that finds
  // no slot in the table. Returns that key.
  std::uint64_t charge_overflow_cell() {
    std::uint64_t key = 1;
    while (!overflow_) EXPECT_TRUE(charge(budget_, 10, kStart + 5s, ++key));
    overflow_ = false;
    return key;
  }

  const Limiter budget_ = token_bucket("10/s", 10);
  const Limiter daily_ = FixedWindow::make(rate("1000000/day")).value();
};

TEST_F(SettlingOverflow, KeyThatReturnsToTheTableAlsoOwesTheUnitsOwedInTheOverflowCell) {
  ASSERT_TRUE(charge(budget_, 10));
  fill();
  (void)charge_overflow_cell();
  while (table_.stats().keys_by_rule[0] > 0) table_.sweep(kStart + 6s, 1'000);
  ASSERT_FALSE(table_.has_state(key_of(1)));
  settle(budget_, 10, 100, kStart, 5s);
  ASSERT_TRUE(table_.has_state(key_of(1)));
  EXPECT_EQ(current_outcome(budget_, kStart + 5s).reset_after, 10s)
      << "one second of the overflow cell, and nine of the key";
}

TEST_F(SettlingOverflow, KeyThatLeftTheTableGetsNoRefundFromTheOverflowCell) {
  ASSERT_TRUE(charge(budget_, 10));
  fill();
  (void)charge_overflow_cell();
  while (table_.stats().keys_by_rule[0] > 0) table_.sweep(kStart + 6s, 1'000);
  settle(budget_, 10, 4, kStart, 5s);
  EXPECT_FALSE(table_.has_state(key_of(1)));
}

TEST_F(SettlingOverflow, UnitsOwedByAKeyOutsideTheTableAreChargedToTheOverflowCell) {
  fill();
  const auto key = charge_overflow_cell();
  settle(budget_, 10, 100, kStart + 4s, 1s, key);
  ASSERT_FALSE(table_.has_state(key_of(key)));
  overflow_ = true;
  EXPECT_EQ(current_outcome(budget_, kStart + 5s).reset_after, 10s);
}

TEST_F(Settling, KeyThatLeftTheTableGetsANewLogEntryForItsActualCost) {
  const auto daily = sliding_log("5/10s");
  settle(daily, 1, 9, kStart, 4s);
  EXPECT_EQ(current_outcome(daily, kStart + 4s).remaining, 0U);
  EXPECT_EQ(current_outcome(daily, kStart + 4s).retry_after, 6s);
  EXPECT_TRUE(charge(daily, 5, kStart + 10s));
}

// Two workers read the times kStart + 1 µs and kStart + 2 µs, and the worker with the later time is charged
// first. The log then enters the other charge at kStart + 2 µs, too. Settling must still find this entry.
TEST_F(Settling, LogEntryWithALaterTimeThanItsRequestIsStillFoundAndSettled) {
  const auto daily = sliding_log("5/day");
  ASSERT_TRUE(charge(daily, 1, kStart));
  ASSERT_TRUE(charge(daily, 1, kStart + 2us));
  ASSERT_TRUE(charge(daily, 1, kStart + 1us));
  for (const auto at : {kStart + 1us, kStart, kStart + 2us}) settle(daily, 1, 0, at);
  EXPECT_EQ(current_outcome(daily, kStart + 1s), full(daily));
}

TEST_F(Settling, SettlementOfAnExpiredLogEntryChangesNoOtherEntry) {
  const auto brief = sliding_log("5/10s");
  ASSERT_TRUE(charge(brief, 2, kStart));
  ASSERT_TRUE(charge(brief, 3, kStart + 9s));
  settle(brief, 2, 0, kStart, 10s);
  EXPECT_EQ(current_outcome(brief, kStart + 10s).remaining, 2U);
  settle(brief, 2, 4, kStart, 10s);
  EXPECT_EQ(current_outcome(brief, kStart + 10s).remaining, 2U);
}

// A sliding log has only one entry in an overflow cell (the state that keys outside the table share). A log
// in a slot also has only one entry if no chunk is free.
TEST(SettleLaws, SlidingLogThatKeepsOnlyOneEntryIsSettled) {
  const Limiter log = sliding_log("10/10s");
  const auto cell = [](TimePoint newest, Cost total) {
    return Cell{{static_cast<std::uint64_t>(newest.time_since_epoch().count()), total}};
  };
  const auto settled = [&](const Cell& before, TimePoint charged_at, Cost reserved, Cost actual) {
    return limit::settle(log, before, charged_at, reserved, actual);
  };
  const auto later = kStart + 4s;
  EXPECT_EQ(settled({}, kStart, 2, 5), cell(kStart, 5))
      << "the whole cost is charged, because the reserve has expired";
  EXPECT_EQ(settled({}, kStart, 5, 2), Cell{});
  EXPECT_EQ(settled(cell(later, 6), kStart, 2, 5), cell(later, 9)) << "the charges of other requests stay";
  EXPECT_EQ(settled(cell(later, 6), kStart, 5, 2), cell(later, 3));
  EXPECT_EQ(settled(cell(later, 6), kStart, 6, 0), Cell{});
  EXPECT_EQ(settled(cell(later, 6), kStart - 6s, 2, 5), cell(later, 6))
      << "an expired charge changes nothing";
  EXPECT_EQ(settled(cell(later, 6), kStart - 6s, 5, 2), cell(later, 6));
  EXPECT_EQ(settled(cell(kStart, 6), later, 2, 5), cell(later, 11))
      << "the reserve of the request was refunded, and the debt is charged at the newest entry";
  EXPECT_EQ(settled(cell(kStart, 6), later, 5, 2), cell(kStart, 6));
}

// The cost of an entry and the total cost of a log each have a limited number of bits. A settled cost must
// fit into these bits.
TEST_F(Settling, SettledCostOfASlidingLogStopsAtTheLargestCostAnEntryCanHold) {
  const Limiter buckets = SlidingLog::make(rate("5/10s"), 10).value();
  ASSERT_TRUE(charge(buckets, 1, kStart));
  ASSERT_TRUE(charge(buckets, 1, kStart + 3s));
  settle(buckets, 1, kMaxCost, kStart);
  settle(buckets, 1, kMaxCost, kStart + 3s);
  EXPECT_EQ(current_outcome(buckets, kStart + 4s).remaining, 0U)
      << "both debts together exceed the largest cost of an entry";
  EXPECT_EQ(current_outcome(buckets, kStart + 10s).remaining, 0U) << "the second debt was lost";
  EXPECT_EQ(current_outcome(buckets, kStart + 13s), full(buckets));
}

TEST_F(Settling, WholeSettledCostOfALogEntryExpiresWithTheEntry) {
  const auto exact = sliding_log("5/10s");
  ASSERT_TRUE(charge(exact, 1, kStart));
  ASSERT_TRUE(charge(exact, 1, kStart + 3s));
  settle(exact, 1, 20'000, kStart);
  EXPECT_EQ(current_outcome(exact, kStart + 10s - 1us).remaining, 0U);
  EXPECT_EQ(current_outcome(exact, kStart + 10s).remaining, 4U) << "the whole debt belonged to the entry";
}

TEST(SettleLaws, SettlementChangesNoLeakyBucketAndNoConcurrencyLimit) {
  for (const Limiter& limiter : {leaky_bucket("1/s", 5), Limiter(Concurrency::make(3).value()),
                                 Limiter(AdaptiveConcurrency::make(1, 9).value())}) {
    EXPECT_FALSE(settles(limiter));
    const Cell cell = step(limiter, {}, kStart, 1).next;
    EXPECT_EQ(limit::settle(limiter, cell, kStart, 1, 0), cell);
    EXPECT_EQ(limit::settle(limiter, cell, kStart, 1, 9), cell);
  }
}

// The table is full, so new keys share the overflow cell.
TEST_F(Settling, ChargeInTheOverflowCellIsSettledThere) {
  const auto budget = token_bucket("1/h", 10);
  std::uint64_t key = 1;
  while (charge(budget, 10, kStart, key) && !overflow_) ++key;
  ASSERT_TRUE(overflow_);
  settle(budget, 10, 4, kStart, 1s, key);
  EXPECT_EQ(current_outcome(budget, kStart, key).remaining, 6U);
  EXPECT_TRUE(current_outcome(budget, kStart, key).overflow);
  ASSERT_TRUE(charge(budget, 6, kStart, key));
  settle(budget, 6, 36, kStart, 1s, key);
  EXPECT_EQ(current_outcome(budget, kStart, key).retry_after, 31h);
}

// Many threads reserve and settle costs of the same key at once. In the end the key must be charged exactly
// the settled costs.
TEST_F(Settling, NoSettlementIsLostIfManyThreadsSettleAtOnce) {
  const Limiter limiters[] = {token_bucket("10000/day", 1'000'000), Limiter(sliding_log("10000/day")),
                              Limiter(FixedWindow::make(rate("1000000/day")).value())};
  for (const auto& limiter : limiters) {
    KeyTable table(1000);
    const auto work = [&](unsigned number) {
      for (unsigned i = 0; i < 500; ++i) {
        const auto at = kStart + Duration(i + number);
        const Charge one{key_of(7), &limiter, 3};
        Outcome outcome;
        ASSERT_TRUE(table.charge({&one, 1}, at, {&outcome, 1}));
        table.settle(one, {at, (i + number) % 2, at + 1s});
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    const auto left = table.current_outcome({key_of(7), &limiter}, kStart + 1ms);
    EXPECT_EQ(left.remaining, quota(limiter) - 500) << describe(limiter);
  }
}

TEST(SettleLaws, LargestCostsDoNotOverflow) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int i = 0; i < 20'000; ++i) {
    Case c = dice.limiter();
    if (!settles(c.limiter)) continue;
    const TimePoint start = dice.start();
    Cell cell;
    TimePoint now = start;
    for (int debt = 0; debt < 6; ++debt) {
      const Cell before = cell;
      cell = settle(c.limiter, cell, now, 1, kMaxCost);
      const auto limit = std::max(drained_at(c.limiter, before), now + std::chrono::hours(24 * 36'525) * 2);
      const auto outcome = current_outcome(c.limiter, cell, now);
      ASSERT_GE(drained_at(c.limiter, cell), drained_at(c.limiter, before)) << "seed " << seed << ": " << c;
      ASSERT_LE(drained_at(c.limiter, cell), limit) << "seed " << seed << ": " << c;
      ASSERT_GE(outcome.reset_after, 0us);
      ASSERT_LE(outcome.remaining, c.capacity);
      if (!outcome.allowed) {
        ASSERT_EQ(outcome.remaining, 0U);
        ASSERT_TRUE(step(c.limiter, cell, now + outcome.retry_after, 1).outcome.allowed) << c;
        ASSERT_FALSE(step(c.limiter, cell, now + outcome.retry_after - 1us, 1).outcome.allowed) << c;
      }
      now += dice.pause(c);
    }
  }
}

// A full bucket forgets its earlier charges. If the bucket was full after the charge, a settlement may be
// wrong. A refund may return too many units, at most `reserved` − `actual`. A higher actual cost may charge
// too many units, at most `actual` − `reserved`.
TEST(SettleLaws, SettlementAfterARefillIsWrongByAtMostTheDifferenceOfTheCosts) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int i = 0; i < 20'000; ++i) {
    const Case c = dice.limiter();
    if (!c.is_paced() || !settles(c.limiter)) continue;
    const TimePoint start = dice.start();
    const Cost reserved = dice.magnitude(1, c.capacity);
    const Cost actual = dice.magnitude(0, c.capacity);
    const auto later = start + dice.pause(c);
    const auto other = [&](const Cell& cell) { return step(c.limiter, cell, later, 1).next; };
    const Cell held = other(step(c.limiter, {}, start, reserved).next);
    const Cell settled = settle(c.limiter, held, start, reserved, actual);
    const Cell truly = other(actual != 0 ? step(c.limiter, {}, start, actual).next : Cell{});
    const Cell without = refund(c.limiter, held, start, actual < reserved ? reserved - actual : 0);
    const auto drains = [&](const Cell& cell) { return std::max(drained_at(c.limiter, cell), later); };
    if (actual < reserved) {
      EXPECT_LE(drains(settled), drains(truly)) << "seed " << seed << ": " << c;
      EXPECT_EQ(settled, without);
    } else if (step(c.limiter, step(c.limiter, {}, start, actual).next, later, 1).outcome.allowed) {
      EXPECT_GE(drains(settled), drains(truly)) << "seed " << seed << ": " << c;
    }
  }
}

}  // namespace
}  // namespace weir::limit
