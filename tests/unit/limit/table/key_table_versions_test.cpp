// Reloads change the rules of a table. A request converts the state that it uses, and one pass over the table
// converts all other states.
#include "weir/limit/key_table.hpp"
#include "weir/limit/permit.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

using namespace std::chrono_literals;

const base::TimePoint kNow{1'700'000'000'000'000us};
const Limiter kTen = FixedWindow::make({10, 1h}).value();
const Limiter kTwenty = FixedWindow::make({20, 1h}).value();

class KeyTableVersions : public testing::Test {
 protected:
  static SavedRule reading(const std::string& name, const Limiter& limiter) {
    return {.name = name,
            .variants = {{.name = 1, .numbers = 0, .limiter_id = 0, .limiter = &limiter}},
            .limiters = {&limiter}};
  }
  static Charge charge(std::uint64_t key, const Limiter& limiter, RuleIndex rule, Cost cost = 1) {
    return {.key = {key * 0x9e37'79b9'7f4a'7c15, key * 0xd1b5'4a32'd192'ed03},
            .limiter = &limiter,
            .cost = cost,
            .rule = rule};
  }
  Outcome ask(const Charge& line) {
    Outcome outcome;
    table_.charge({&line, 1}, kNow, {&outcome, 1});
    return outcome;
  }

  KeyTable table_{1000};
};

TEST_F(KeyTableVersions, ConvertedKeyKeepsTheUsedPercentageOfItsLimit) {
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0, 6)).remaining, 4);
  table_.define_rule(1, reading("r", kTwenty), kNow);
  EXPECT_EQ(ask(charge(1, kTwenty, 1, 1)).remaining, 7);
  EXPECT_EQ(table_.stats().keys_by_rule[0], 0);
}

TEST_F(KeyTableVersions, KeyIsConvertedOnlyOnceEvenIfEachRequestIsRejected) {
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0, 10)).remaining, 0);
  table_.define_rule(1, reading("r", kTwenty), kNow);
  EXPECT_FALSE(ask(charge(1, kTwenty, 1)).allowed);
  EXPECT_FALSE(ask(charge(1, kTwenty, 1)).allowed);
  EXPECT_EQ(table_.peek(charge(1, kTwenty, 1), kNow).remaining, 0);
}

TEST_F(KeyTableVersions, RequestFromBeforeAReloadIsChargedUnderTheNewLimit) {
  table_.define_rule(0, reading("r", kTen), kNow);
  ask(charge(1, kTen, 0, 5));
  table_.define_rule(1, reading("r", kTwenty), kNow);
  ask(charge(1, kTwenty, 1));
  EXPECT_EQ(ask(charge(1, kTen, 0)).remaining, 8) << "12 units of 20 are used";
  EXPECT_TRUE(table_.refund(charge(1, kTen, 0, 5), kNow, kNow))
      << "a refund of half the former limit is half of the new limit";
  EXPECT_EQ(ask(charge(1, kTwenty, 1)).remaining, 17);
}

TEST_F(KeyTableVersions, ReloadConvertsIdleKeysAndRemovesKeysOfRemovedRules) {
  table_.define_rule(0, reading("r", kTen), kNow);
  table_.define_rule(2, reading("gone", kTen), kNow);
  for (std::uint64_t key = 1; key <= 100; ++key) {
    ask(charge(key, kTen, 0, 5));
    ask(charge(key + 1000, kTen, 2, 5));
  }
  table_.define_rule(1, reading("r", kTwenty), kNow);
  table_.forget_rules({2});
  table_.migrate_cells(kNow);
  const auto stats = table_.stats();
  EXPECT_EQ(stats.keys_by_rule[0], 0);
  EXPECT_EQ(stats.keys_by_rule[1], 100);
  EXPECT_EQ(stats.keys_by_rule[2], 0);
  EXPECT_EQ(ask(charge(7, kTwenty, 1)).remaining, 9);
}

TEST_F(KeyTableVersions, ReloadDoesNotChangeKeysOfUnchangedLimits) {
  table_.define_rule(0, reading("r", kTen), kNow);
  ask(charge(1, kTen, 0, 3));
  table_.define_rule(0, reading("r", kTen), kNow);
  table_.migrate_cells(kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0)).remaining, 6);
}

TEST_F(KeyTableVersions, SlidingLogOfManyEntriesIsConvertedToTheNewLimit) {
  const Limiter small = SlidingLog::make({100, 1h}).value();
  const Limiter large = SlidingLog::make({200, 1h}).value();
  table_.define_rule(0, reading("r", small), kNow - 1min);
  for (int i = 0; i < 60; ++i) {
    const auto line = charge(1, small, 0);
    Outcome outcome;
    table_.charge({&line, 1}, kNow - 1min + base::Duration(i), {&outcome, 1});
  }
  table_.define_rule(1, reading("r", large), kNow);
  EXPECT_EQ(ask(charge(1, large, 1)).remaining, 79);
  EXPECT_EQ(table_.stats().log_chunks_used, (61 + 6) / 7);
  table_.forget_rules({1});
  table_.migrate_cells(kNow);
  EXPECT_EQ(table_.stats().log_chunks_used, 0);
}

TEST_F(KeyTableVersions, OverflowCellIsConvertedToTheNewLimit) {
  KeyTable small(1);
  small.define_rule(0, reading("r", kTen), kNow);
  Outcome outcome;
  for (std::uint64_t key = 1; key < 200 && !outcome.overflow; ++key) {
    const auto line = charge(key, kTen, 0, 5);
    small.charge({&line, 1}, kNow, {&outcome, 1});
  }
  ASSERT_TRUE(outcome.overflow);
  small.define_rule(1, reading("r", kTwenty), kNow);
  const auto line = charge(1'000, kTwenty, 1);
  small.charge({&line, 1}, kNow, {&outcome, 1});
  EXPECT_TRUE(outcome.overflow);
  EXPECT_EQ(outcome.remaining, 9);
}

// A permit that the overflow cell counts must be released in that cell. If new slots copied the count, nobody
// would release the copy.
TEST_F(KeyTableVersions, PermitCountedInTheOverflowCellIsReleasedThereAfterAReload) {
  const Limiter two = Concurrency::make(2).value(), three = Concurrency::make(3).value();
  KeyTable small(1);
  small.define_rule(0, reading("r", two), kNow);
  Outcome outcome;
  std::vector<Permit> held;
  for (std::uint64_t key = 1; key < 200 && !outcome.overflow; ++key) {
    const auto line = charge(key, two, 0);
    ASSERT_TRUE(small.charge({&line, 1}, kNow, {&outcome, 1}));
    held.emplace_back(small, line, kNow, outcome.overflow);
  }
  ASSERT_TRUE(outcome.overflow);
  small.define_rule(1, reading("r", three), kNow);
  held.pop_back();
  const auto line = charge(1'000, three, 1);
  small.charge({&line, 1}, kNow, {&outcome, 1});
  EXPECT_TRUE(outcome.overflow);
  EXPECT_EQ(outcome.remaining, 2) << "a permit was not released";
}

// A request reserved five units of a limit of a thousand, and used four. The surplus unit is less than one
// unit of the new limit, which is ten. Rounding must not turn its refund into a charge.
TEST_F(KeyTableVersions, RefundOfLessThanOneUnitOfTheNewLimitChangesNothing) {
  const auto remaining = [&](const Limiter& many, const Limiter& few) {
    KeyTable table(1000);
    table.define_rule(0, reading("r", many), kNow);
    Outcome outcome;
    const auto asked = charge(1, many, 0, 5), later = charge(1, few, 1);
    table.charge({&asked, 1}, kNow, {&outcome, 1});
    table.define_rule(1, reading("r", few), kNow);
    table.charge({&later, 1}, kNow, {&outcome, 1});
    table.settle(asked, {kNow, 4, kNow});
    return std::pair(outcome.remaining, table.peek(later, kNow).remaining + 1);
  };
  for (const auto& [before, after] :
       {remaining(FixedWindow::make({1000, 1h}).value(), FixedWindow::make({10, 1h}).value()),
        remaining(SlidingLog::make({1000, 1h}).value(), SlidingLog::make({10, 1h}).value())})
    EXPECT_EQ(after, before);
}

// A reload gives a rule another algorithm. The next reload gives the rule its first algorithm again.
class KeyTableGenerations : public KeyTableVersions {
 protected:
  bool admits(const Charge& line) { return ask(line).allowed; }
  bool refund(const Charge& line) { return table_.refund(line, kNow, kNow); }
  // Charges a request that stays in progress.
  Permit hold(const Charge& line) {
    const auto outcome = ask(line);
    EXPECT_TRUE(outcome.allowed);
    return {table_, line, kNow, outcome.overflow};
  }
  int room(Charge line) {
    int room = 0;
    while (admits(line)) ++room;
    return room;
  }

  const Limiter log_ = SlidingLog::make({10, 1h}).value();
  const Limiter two_ = Concurrency::make(2).value();
  const Limiter adaptive_ = AdaptiveConcurrency::make(2, 2).value();
};

TEST_F(KeyTableGenerations, ChargeOfAFormerAlgorithmIsNotRefunded) {
  table_.define_rule(0, reading("r", kTen), kNow);
  const auto first = charge(1, kTen, 0, 4);
  EXPECT_TRUE(admits(first));
  table_.define_rule(1, reading("r", log_), kNow);
  EXPECT_FALSE(table_.is_current(0)) << "the keys of the former algorithm start unused";
  EXPECT_TRUE(admits(charge(1, log_, 1, 4)));
  EXPECT_FALSE(refund(first)) << "the charge by the former algorithm is not refunded to the log";
  table_.define_rule(2, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 2, 10)));
  EXPECT_FALSE(refund(first));
  EXPECT_FALSE(refund(charge(1, log_, 1, 4)));
  table_.settle(first, {kNow, 0, kNow});
  table_.settle(first, {kNow, 9, kNow});
  EXPECT_FALSE(admits(charge(1, kTen, 2)));
  EXPECT_TRUE(refund(charge(1, kTen, 2, 10)));
  EXPECT_EQ(room(charge(1, kTen, 2)), 10);
}

// No request has used the key since the reload. So the key's state still belongs to the former algorithm, and
// a charge by that algorithm can be refunded.
TEST_F(KeyTableGenerations, ChargeIsRefundedAfterAChangeOfAlgorithmIfNoRequestHasUsedItsKeySince) {
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 0, 4)));
  table_.define_rule(1, reading("r", log_), kNow);
  EXPECT_TRUE(refund(charge(1, kTen, 0, 4)));
  EXPECT_EQ(room(charge(1, kTen, 0)), 10);
}

TEST_F(KeyTableGenerations, ChargeCanStillBeRefundedAfterAChangeOfTheLimitOnly) {
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 0, 4)));
  table_.define_rule(1, reading("r", kTwenty), kNow);
  EXPECT_TRUE(admits(charge(1, kTwenty, 1)));
  EXPECT_TRUE(table_.is_current(0));
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_TRUE(refund(charge(1, kTen, 0, 4)));
  EXPECT_EQ(room(charge(1, kTen, 0)), 9);
}

TEST_F(KeyTableGenerations, ReloadRemovesKeysWhoseAlgorithmChanged) {
  auto rule = reading("r", kTen);
  rule.variants.push_back({.name = 2, .numbers = 0, .limiter_id = 2, .limiter = &two_});
  table_.define_rule(0, rule, kNow);
  auto tier = charge(2, two_, 0);
  tier.limiter_id = 2;
  EXPECT_TRUE(admits(charge(1, kTen, 0)));
  auto held = hold(tier);
  rule.variants[0].limiter = &log_;
  table_.define_rule(1, rule, kNow);
  table_.migrate_cells(kNow);
  EXPECT_EQ(table_.stats().keys, 2) << "the tier keeps its algorithm, and a cell does not show its limiter";
  rule.variants[1].limiter = &kTen;
  table_.define_rule(2, rule, kNow);
  table_.migrate_cells(kNow);
  EXPECT_EQ(table_.stats().keys, 0);
  held.release(kNow, {});
  EXPECT_EQ(table_.stats().keys, 0);
}

TEST_F(KeyTableGenerations, RemovedRuleThatReturnsStartsWithItsFullLimit) {
  table_.define_rule(0, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 0, 4)));
  table_.forget_rules({0});
  EXPECT_FALSE(table_.is_current(0));
  table_.define_rule(1, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 1, 10)));
  EXPECT_FALSE(refund(charge(1, kTen, 0, 4)));
}

// Two permits are held when the rule changes its algorithm and then changes back. Afterwards the permits must
// not occupy the limit, and their release must not free a part of it.
TEST_F(KeyTableGenerations, PermitTakenBeforeAChangeOfAlgorithmIsNotCountedAndItsReleaseFreesNoUnit) {
  table_.define_rule(0, reading("r", two_), kNow);
  const auto old = charge(1, two_, 0);
  std::vector<Permit> held;
  held.push_back(hold(old));
  held.push_back(hold(old));
  EXPECT_FALSE(admits(old));
  table_.define_rule(1, reading("r", kTen), kNow);
  EXPECT_TRUE(admits(charge(1, kTen, 1)));
  table_.define_rule(2, reading("r", two_), kNow);
  const auto now = charge(1, two_, 2);
  std::vector<Permit> new_permits;
  new_permits.push_back(hold(now));
  new_permits.push_back(hold(now));
  held.clear();
  EXPECT_FALSE(admits(now)) << "two requests are in flight";
  new_permits.clear();
  EXPECT_EQ(room(now), 2);
}

TEST_F(KeyTableGenerations, IdleKeyHasItsFullLimitAfterTheAlgorithmWasChangedTwice) {
  table_.define_rule(0, reading("r", two_), kNow);
  std::vector<Permit> held;
  held.push_back(hold(charge(1, two_, 0)));
  table_.define_rule(1, reading("r", kTen), kNow);
  table_.define_rule(2, reading("r", two_), kNow);
  const auto now = charge(1, two_, 2);
  std::vector<Permit> new_permits;
  new_permits.push_back(hold(now));
  new_permits.push_back(hold(now));
  held.clear();
  EXPECT_FALSE(admits(now));
  new_permits.clear();
  EXPECT_EQ(table_.peek(now, kNow).remaining, 1)
      << "no unit of the former algorithm is used after one more request";
}

TEST_F(KeyTableGenerations, AdaptiveLimitIgnoresPermitsTakenBeforeAChangeOfAlgorithm) {
  table_.define_rule(0, reading("r", two_), kNow);
  std::vector<Permit> held;
  held.push_back(hold(charge(1, two_, 0)));
  held.push_back(hold(charge(1, two_, 0)));
  table_.define_rule(1, reading("r", adaptive_), kNow);
  const auto now = charge(1, adaptive_, 1);
  std::vector<Permit> new_permits;
  new_permits.push_back(hold(now));
  new_permits.push_back(hold(now));
  held.clear();
  EXPECT_FALSE(admits(now));
  new_permits.clear();
  EXPECT_EQ(room(now), 2);
}

// A request that began under the old configuration is charged late, for example because its body came slowly.
// Its permit is counted in the overflow cell (the state that keys without a slot share). There the permit
// cannot occupy the new limit forever, and its release frees no unit of the new limit.
TEST_F(KeyTableGenerations, RequestFromBeforeAChangeOfAlgorithmIsCountedInTheOverflowCell) {
  const auto late = [this](const Limiter& was, const Limiter& is) {
    SCOPED_TRACE(describe(was) + ", then " + describe(is));
    KeyTable table(1000);
    table.define_rule(0, reading("r", was), kNow);
    table.define_rule(1, reading("r", is), kNow);
    const auto ask = [&](const Charge& line, Outcome& outcome) {
      return table.charge({&line, 1}, kNow, {&outcome, 1});
    };
    Outcome outcome;
    const auto now = charge(1, is, 1);
    const auto old = charge(1, was, 0);
    ASSERT_TRUE(ask(now, outcome));
    {
      std::optional<Permit> of_now;
      if (holds(is)) of_now.emplace(table, now, kNow, outcome.overflow);
      ASSERT_TRUE(ask(old, outcome));
      EXPECT_TRUE(outcome.overflow);
      std::optional<Permit> of_late;
      if (holds(was)) of_late.emplace(table, old, kNow, outcome.overflow);
      EXPECT_EQ(table.peek(now, kNow).remaining, quota(is) - 2) << "one more request was charged";
    }
    EXPECT_EQ(table.peek(now, kNow).remaining, quota(is) - (holds(is) ? 1 : 2));
  };
  late(two_, kTen);
  late(kTen, two_);
  late(two_, adaptive_);
  late(adaptive_, two_);
}

}  // namespace
}  // namespace weir::limit
