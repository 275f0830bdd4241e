// Tests how saved state is shifted to another clock.
#include "limit/snapshot/time_shift.hpp"

#include "unit/limit/random_case.hpp"
#include "unit/limit/snapshot/snapshots.hpp"

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

using namespace std::chrono_literals;

SavedKey saved_key(const Limiter& limiter, const Cell& cell) {
  return {.key = {}, .rule = 0, .drained_at = drained_at(limiter, cell), .cell = cell};
}

SavedRule rule_with(std::initializer_list<const Limiter*> limiters) {
  return {.name = "r", .variants = {}, .limiters = limiters};
}

// Shifts states of every limiter. By the new clock, windows and buckets begin at other instants, but spent
// units must stay spent.
TEST(TimeShift, ShiftedStateHasTheSameRemainingUnitsAndWaits) {
  const auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Dice dice(seed);
  for (int i = 0; i < 3'000; ++i) {
    const auto made = dice.limiter();
    const bool aligned =
        made.algorithm >= Algorithm::FixedWindow && made.algorithm <= Algorithm::BucketedWindow;
    auto now = TimePoint(1'700'000'000s);
    Cell cell{};
    for (int step_number = 0; step_number < 4; ++step_number) {
      cell = step(made.limiter, cell, now, std::min<Cost>(dice.cost(made), kMaxCost)).next;
      now += std::min<Duration>(dice.pause(made), 24h * 365);
    }
    if (drained_at(made.limiter, cell) <= now) continue;
    const auto length = Duration(dice.magnitude(3'000'000, 400'000'000'000));
    const auto by = dice.one_in(2) ? length : -length;
    const TimeShift moved{by, now + by};
    auto saved = saved_key(made.limiter, cell);
    move(saved, rule_with({&made.limiter}), moved);
    EXPECT_EQ(saved.drained_at, drained_at(made.limiter, saved.cell)) << made;
    const auto before = step(made.limiter, cell, now, 1).outcome;
    const auto after = step(made.limiter, saved.cell, moved.now, 1).outcome;
    if (!aligned) {
      EXPECT_EQ(after, before) << made;
    } else if (made.algorithm == Algorithm::FixedWindow) {
      EXPECT_EQ(after.remaining, before.remaining) << made;
      EXPECT_LE(std::chrono::abs(after.reset_after - before.reset_after), length) << made;
    }
  }
}

// The old clock was fifty minutes fast. The window of a day must become the window of the same day by the
// correct clock.
TEST(TimeShift, ShiftedFixedWindowEndsWithTheWindowOfTheCorrectClock) {
  const Limiter day = FixedWindow::make({5, 24h}).value();
  const auto noon = TimePoint(std::chrono::sys_days(std::chrono::days(20'000))) + 12h;
  const auto cell = step(day, {}, noon + 50min, 3).next;
  auto saved = saved_key(day, cell);
  move(saved, rule_with({&day}), {-50min, noon});
  const auto current_outcome = step(day, saved.cell, noon, 1).outcome;
  EXPECT_EQ(current_outcome.remaining, 1);
  EXPECT_EQ(current_outcome.reset_after, 12h);
  EXPECT_EQ(step(day, refund(day, saved.cell, noon, 1), noon, 3).outcome.allowed, true);
}

// The old clock is two hours slow: it shows 22:30 when the correct clock shows 00:30 of the next day. The
// saved window of the old day still lasts 90 minutes after the shift.
TEST(TimeShift, FixedWindowKeepsItsRemainingTimeEvenIfItsDayHasEndedByTheCorrectClock) {
  const Limiter day = FixedWindow::make({5, 24h}).value();
  const auto midnight = TimePoint(std::chrono::sys_days(std::chrono::days(20'000)));
  const auto then = midnight - 90min;  // by the old clock
  auto saved = saved_key(day, step(day, {}, then, 5).next);
  move(saved, rule_with({&day}), {2h, then + 2h});
  const auto refused = step(day, saved.cell, then + 2h, 1).outcome;
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 90min);
  EXPECT_TRUE(step(day, refund(day, saved.cell, then + 2h, 2), then + 2h, 2).outcome.allowed)
      << "a charge in the shifted window can be refunded";
  EXPECT_TRUE(step(day, saved.cell, then + 2h + 90min, 5).outcome.allowed);
}

// A client spends all its units in a window of one minute, by a clock that is fifty minutes fast. Ten minutes
// later the state is shifted to the correct clock. The window is over, so the client has its full limit.
TEST(TimeShift, FixedWindowThatHasEndedStaysEndedAfterTheShift) {
  const Limiter minute = FixedWindow::make({5, 1min}).value();
  const auto noon = TimePoint(std::chrono::sys_days(std::chrono::days(20'000))) + 12h;
  auto saved = saved_key(minute, step(minute, {}, noon + 50min, 5).next);
  move(saved, rule_with({&minute}), {-50min, noon + 10min});
  EXPECT_LE(saved.drained_at, noon + 10min);
  EXPECT_EQ(step(minute, saved.cell, noon + 10min, 5).outcome.allowed, true);
}

TEST(TimeShift, KeyIsShiftedInTheUnitsOfItsOwnLimiter) {
  const Limiter slow = token_bucket("1/h", 10);
  const Limiter fast = token_bucket("7/s", 1'000);
  const auto now = TimePoint(1'700'000'000s);
  const auto rule = rule_with({&slow, &fast});
  for (const auto* limiter : {&slow, &fast}) {
    const auto cell = step(*limiter, {}, now, 4).next;
    auto saved = saved_key(*limiter, cell);
    move(saved, rule, {-10h, now - 10h});
    EXPECT_EQ(step(*limiter, saved.cell, now - 10h, 1).outcome, step(*limiter, cell, now, 1).outcome);
  }
}

TEST(TimeShift, LogEntriesKeepTheirTimeDifferences) {
  const Limiter log = SlidingLog::make({50, 1h}, 20).value();
  const auto& buckets = std::get<SlidingLog>(log);
  const auto now = TimePoint(1'700'000'000s);
  const auto mark = buckets.mark_of(now);
  SavedKey saved{
      .key = {}, .rule = 0, .drained_at = buckets.expiry_of(mark), .log = {{mark - 3, 1}, {mark, 2}}};
  move(saved, rule_with({&log}), {-50min, now - 50min});
  EXPECT_EQ(saved.log[1].mark - saved.log[0].mark, 3);
  EXPECT_EQ(saved.log[1].mark, buckets.mark_of(now - 50min));
  EXPECT_EQ(saved.drained_at, buckets.expiry_of(saved.log[1].mark));
}

// The new clock starts in 1970, as on a machine whose clock has no battery.
TEST(TimeShift, LogEntriesAreNeverShiftedBefore1970) {
  const Limiter log = SlidingLog::make({50, 1h}, 20).value();
  const auto& buckets = std::get<SlidingLog>(log);
  const auto now = TimePoint(1'700'000'000s);
  const auto mark = buckets.mark_of(now);
  const auto rule = rule_with({&log});
  for (const auto by :
       {-now.time_since_epoch(), -now.time_since_epoch() - 1h, 5min - now.time_since_epoch()}) {
    SavedKey saved{.key = {},
                   .rule = 0,
                   .drained_at = buckets.expiry_of(mark),
                   .log = {{mark - 9, 1}, {mark - 8, 4}, {mark, 2}}};
    move(saved, rule, {by, now + by});
    EXPECT_EQ(saved.log[2].mark, buckets.mark_of(std::max(now + by, TimePoint{})));
    EXPECT_LE(saved.log[0].mark, saved.log[1].mark);
    EXPECT_LE(saved.log[1].mark, saved.log[2].mark) << "no entry has wrapped into the future";
    EXPECT_EQ(saved.drained_at, buckets.expiry_of(saved.log[2].mark));
  }
}

TEST(TimeShift, ShiftIsTheDifferenceOfTheClocksAtTheTimeOfTheSnapshot) {
  const auto at = TimePoint(1'700'000'000s);
  const auto shift = [&](Duration fast, Duration passed) {
    return shift_of({.names = {}, .saved_at = at + fast, .machine_at = at}, at + passed);
  };
  EXPECT_EQ(shift(50min, 1h), -50min);
  EXPECT_EQ(shift(-2h, 1h), 2h);
  EXPECT_EQ(shift(2s, 1h), 0s) << "a difference below the tolerance counts as none";
  EXPECT_EQ(shift(0s, -50min), -50min) << "the machine's clock was set back, so no time has passed";
  EXPECT_EQ(shift(0s, -1s), 0s);
}

TEST(TimeShift, SnapshotSavedWithAFastClockIsShiftedBack) {
  const Limiter bucket = token_bucket("1/h", 3);
  const std::vector<SavedRule> rules{rule_of("r", bucket)};
  const auto right = kStart;
  const auto fast = right + 50min;
  KeyTable table(100);
  const Charge line{key_of(1), &bucket, 3, 0, true};
  Outcome out;
  ASSERT_TRUE(table.charge({&line, 1}, fast, {&out, 1}));
  std::string bytes;
  write_snapshot(table, {.names = kNames, .saved_at = fast, .machine_at = right}, rules,
                 [&](std::string_view more) { bytes += more; });
  const auto found = check_snapshot(source_of(bytes), rules);
  ASSERT_TRUE(found);
  KeyTable again(100);
  const auto now = right + 30min;
  ASSERT_TRUE(restore_snapshot(source_of(bytes), rules, {now, shift_of(*found, now)}, again));
  Charge one = line;
  one.cost = 1;
  EXPECT_EQ(again.peek(one, now).retry_after, 30min);
}

}  // namespace
}  // namespace weir::limit
