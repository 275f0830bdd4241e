// The table while a reload changes rules: keys move on to new numbers as they are met, or in one pass.
#include "weir/limit/key_table.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

using namespace std::chrono_literals;

const base::TimePoint kNow{1'700'000'000'000'000us};
const Limiter kTen = FixedWindow::make({10, 1h}).value();
const Limiter kTwenty = FixedWindow::make({20, 1h}).value();

class KeyTableReadings : public testing::Test {
 protected:
  static SavedRule reading(const std::string& name, const Limiter& limiter) {
    return {.name = name,
            .variants = {{.name = 1, .numbers = 0, .ledger = 0, .limiter = &limiter}},
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

TEST_F(KeyTableReadings, AKeyMovesOnWithItsShare) {
  table_.introduce(0, reading("r", kTen), kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0, 6)).remaining, 4);
  table_.introduce(1, reading("r", kTwenty), kNow);
  EXPECT_EQ(ask(charge(1, kTwenty, 1, 1)).remaining, 7);
  EXPECT_EQ(table_.stats().keys_by_rule[0], 0);
}

TEST_F(KeyTableReadings, ARefusalMovesOnOnce) {
  table_.introduce(0, reading("r", kTen), kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0, 10)).remaining, 0);
  table_.introduce(1, reading("r", kTwenty), kNow);
  EXPECT_FALSE(ask(charge(1, kTwenty, 1)).allowed);
  EXPECT_FALSE(ask(charge(1, kTwenty, 1)).allowed);
  EXPECT_EQ(table_.peek(charge(1, kTwenty, 1), kNow).remaining, 0);
}

TEST_F(KeyTableReadings, WhoBeganUnderOldNumbersIsChargedUnderTheNewestThatTheKeyHasMet) {
  table_.introduce(0, reading("r", kTen), kNow);
  ask(charge(1, kTen, 0, 5));
  table_.introduce(1, reading("r", kTwenty), kNow);
  ask(charge(1, kTwenty, 1));
  EXPECT_EQ(ask(charge(1, kTen, 0)).remaining, 8) << "12 of 20";
  EXPECT_TRUE(table_.refund(charge(1, kTen, 0, 5), kNow, kNow)) << "half of the old ones is half of the new";
  EXPECT_EQ(ask(charge(1, kTwenty, 1)).remaining, 17);
}

TEST_F(KeyTableReadings, ThePassMovesOnWhatNobodyAsksForAndForgetsWhatIsGone) {
  table_.introduce(0, reading("r", kTen), kNow);
  table_.introduce(2, reading("gone", kTen), kNow);
  for (std::uint64_t key = 1; key <= 100; ++key) {
    ask(charge(key, kTen, 0, 5));
    ask(charge(key + 1000, kTen, 2, 5));
  }
  table_.introduce(1, reading("r", kTwenty), kNow);
  table_.forget(2);
  table_.put_in_order(kNow);
  const auto stats = table_.stats();
  EXPECT_EQ(stats.keys_by_rule[0], 0);
  EXPECT_EQ(stats.keys_by_rule[1], 100);
  EXPECT_EQ(stats.keys_by_rule[2], 0);
  EXPECT_EQ(ask(charge(7, kTwenty, 1)).remaining, 9);
}

TEST_F(KeyTableReadings, AnUnchangedCellIsLeftAlone) {
  table_.introduce(0, reading("r", kTen), kNow);
  ask(charge(1, kTen, 0, 3));
  table_.introduce(0, reading("r", kTen), kNow);
  table_.put_in_order(kNow);
  EXPECT_EQ(ask(charge(1, kTen, 0)).remaining, 6);
}

TEST_F(KeyTableReadings, ALogOfManyEntriesMovesOn) {
  const Limiter small = SlidingLog::make({100, 1h}).value();
  const Limiter large = SlidingLog::make({200, 1h}).value();
  table_.introduce(0, reading("r", small), kNow - 1min);
  for (int i = 0; i < 60; ++i) {
    const auto line = charge(1, small, 0);
    Outcome outcome;
    table_.charge({&line, 1}, kNow - 1min + base::Duration(i), {&outcome, 1});
  }
  table_.introduce(1, reading("r", large), kNow);
  EXPECT_EQ(ask(charge(1, large, 1)).remaining, 79);
  EXPECT_EQ(table_.stats().log_chunks_used, (61 + 6) / 7);
  table_.forget(1);
  table_.put_in_order(kNow);
  EXPECT_EQ(table_.stats().log_chunks_used, 0);
}

TEST_F(KeyTableReadings, TheCellThatNewcomersShareMovesOn) {
  KeyTable small(1);
  small.introduce(0, reading("r", kTen), kNow);
  Outcome outcome;
  for (std::uint64_t key = 1; key < 200 && !outcome.overflow; ++key) {
    const auto line = charge(key, kTen, 0, 5);
    small.charge({&line, 1}, kNow, {&outcome, 1});
  }
  ASSERT_TRUE(outcome.overflow);
  small.introduce(1, reading("r", kTwenty), kNow);
  const auto line = charge(1'000, kTwenty, 1);
  small.charge({&line, 1}, kNow, {&outcome, 1});
  EXPECT_TRUE(outcome.overflow);
  EXPECT_EQ(outcome.remaining, 9);
}

}  // namespace
}  // namespace weir::limit
