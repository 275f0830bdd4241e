// Converts states to the changed parameters of a reloaded rule: examples for each algorithm, and the laws of
// limit/rescale.hpp for random parameters.
#include "weir/limit/rescale.hpp"

#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"

namespace weir::limit {
namespace {

Cell spent(const Limiter& limiter, Cost cost, TimePoint at = kStart) {
  const auto charged = step(limiter, {}, at, cost);
  EXPECT_TRUE(charged.outcome.allowed);
  return charged.next;
}

Cost left(const Limiter& limiter, const Cell& cell, TimePoint at = kStart) {
  return step(limiter, cell, at, kMaxCost).outcome.remaining;
}

Cost left_after(const Limiter& from, Cost used, const Limiter& to) {
  return left(to, rescaled(from, spent(from, used), to, kStart));
}

TEST(Rescale, ChangedBucketKeepsTheUsedPercentageOfItsLimit) {
  const Limiter small = TokenBucket::make({10, 1s}, 100).value();
  const Limiter large = TokenBucket::make({3, 7s}, 200).value();
  EXPECT_EQ(left_after(small, 60, large), 80);
  EXPECT_EQ(left_after(large, 120, small), 40);
  EXPECT_EQ(left_after(small, 100, large), 0);
}

TEST(Rescale, FractionsOfUsedUnitsAreRoundedUp) {
  const Limiter ten = FixedWindow::make({10, 1h}).value();
  const Limiter three = FixedWindow::make({3, 1h}).value();
  EXPECT_EQ(left_after(ten, 1, three), 2);
  EXPECT_EQ(left_after(ten, 4, three), 1);
  EXPECT_EQ(left_after(Gcra::make({1, 1s}, 9).value(), 1, Gcra::make({1, 1s}, 2).value()), 2);
}

TEST(Rescale, ChangedWindowLengthKeepsTheUsedPercentageInThePresentWindow) {
  const Limiter day = FixedWindow::make({100, 24h}).value();
  const Limiter hour = FixedWindow::make({50, 1h}).value();
  const auto cell = rescaled(day, spent(day, 60), hour, kStart);
  EXPECT_EQ(left(hour, cell), 20);
  EXPECT_EQ(left(hour, cell, kStart + 1h), 50);
  const Limiter slow = SlidingWindow::make({100, 24h}).value();
  const Limiter quick = SlidingWindow::make({50, 1h}).value();
  EXPECT_EQ(left_after(slow, 60, quick), 20);
}

// If the used share were kept instead, a client that has used up its day would have used up the whole week.
TEST(Rescale, WindowKeepsItsCountIfItsAlignChanges) {
  using Align = FixedWindow::Align;
  const auto zone = Dice(1).calendar();
  const Limiter day = FixedWindow::make(10, Align::Day, zone).value();
  const Limiter week = FixedWindow::make(700, Align::Week, zone).value();
  const Limiter period = FixedWindow::make({20, 24h}).value();
  const auto weekly = rescaled(day, spent(day, 10), week, kStart);
  EXPECT_EQ(left(week, weekly), 690);
  EXPECT_EQ(drained_at(week, weekly), std::get<FixedWindow>(week).window_at(kStart).end);
  EXPECT_EQ(left_after(week, 500, day), 0);
  EXPECT_EQ(left_after(week, 4, day), 6);
  EXPECT_EQ(left_after(day, 9, period), 11);
  EXPECT_EQ(left_after(period, 9, day), 1);
  EXPECT_EQ(left_after(day, 5, FixedWindow::make(20, Align::Day, zone).value()), 10) << "another limit";
  EXPECT_EQ(rescaled_refund(day, 1, week), 1);
  EXPECT_EQ(rescaled_debt(week, 7, day), 7);
}

TEST(Rescale, ChangedStepwiseBucketKeepsTheElapsedPartOfItsRefillPeriod) {
  const Limiter slow = SteppedBucket::make({50, 6h}, 200).value();
  const Limiter quick = SteppedBucket::make({50, 1h}, 100).value();
  const auto cell = rescaled(slow, spent(slow, 160), quick, kStart + 3h);
  EXPECT_EQ(left(quick, cell, kStart + 3h), 20);
  EXPECT_EQ(left(quick, cell, kStart + 3h + 29min), 20);
  EXPECT_EQ(left(quick, cell, kStart + 3h + 30min), 70);
}

TEST(Rescale, ChangedLeakyBucketKeepsTheDeparturesAlreadyPromised) {
  const Limiter slow = LeakyBucket::make({1, 1s}, 10, base::kForever).value();
  const Limiter quick = LeakyBucket::make({10, 1s}, 100, base::kForever).value();
  const auto cell = rescaled(slow, spent(slow, 5), quick, kStart);
  EXPECT_EQ(step(quick, cell, kStart, 1).outcome.delay, 5s);
}

TEST(Rescale, ChangedBandwidthKeepsPromisedOctetsButDelaysAtMostTenSeconds) {
  const Limiter slow = LeakyBucket::make_pacer({100, 1s}, 10s).value();
  const Limiter quick = LeakyBucket::make_pacer({10'000, 1s}, 10s).value();
  const auto delay = [](const Limiter& from, Cost octets, const Limiter& to) {
    return step(to, rescaled(from, spent(from, octets), to, kStart), kStart, 1).outcome.delay;
  };
  EXPECT_EQ(delay(slow, 800, quick), 80ms);
  EXPECT_EQ(delay(quick, 500, slow), 5s);
  EXPECT_EQ(delay(quick, 50'000, slow), 10s) << "not 500 s";
}

TEST(Rescale, ChangedConcurrencyLimitKeepsTheNumberInFlight) {
  const Limiter few = Concurrency::make(3).value();
  const Limiter many = Concurrency::make(10).value();
  EXPECT_EQ(left_after(few, 3, many), 7);
  EXPECT_EQ(left_after(many, 8, few), 0);
}

TEST(Rescale, RuleWithAnotherAlgorithmStartsWithItsFullLimit) {
  const Limiter bucket = TokenBucket::make({10, 1s}, 100).value();
  const Limiter window = FixedWindow::make({10, 1h}).value();
  EXPECT_EQ(rescaled(bucket, spent(bucket, 60), window, kStart), Cell{});
  EXPECT_EQ(rescaled_refund(bucket, 1, window), 0);
}

TEST(Rescale, ChangedSlidingLogKeepsTheAgesOfItsEntries) {
  const auto old_log = SlidingLog::make({10, 100s}).value();
  const auto new_log = SlidingLog::make({20, 10s}).value();
  const auto at = [&](Duration d) { return old_log.mark_of(kStart + d); };
  const std::vector<LogEntry> entries{{at(-110s), 1}, {at(-50s), 2}, {at(-10s), 3}};
  const auto converted = rescaled(old_log, entries, new_log, kStart);
  ASSERT_EQ(converted.size(), 2);
  EXPECT_EQ(converted[0], (LogEntry{new_log.mark_of(kStart - 5s), 4}));
  EXPECT_EQ(converted[1], (LogEntry{new_log.mark_of(kStart - 1s), 6}));
}

TEST(Rescale, ConvertedRefundsAreRoundedDownAndOwedUnitsRoundedUp) {
  const Limiter ten = FixedWindow::make({10, 1h}).value();
  const Limiter three = FixedWindow::make({3, 1h}).value();
  EXPECT_EQ(rescaled_refund(ten, 5, three), 1);
  EXPECT_EQ(rescaled_debt(ten, 5, three), 2);
  EXPECT_EQ(rescaled_refund(three, 1, ten), 3);
  EXPECT_EQ(rescaled_refund(Concurrency::make(3).value(), 1, Concurrency::make(9).value()), 1);
}

// Uses random parameters, and random states that traffic can produce.
TEST(RescaleLaws, UsedPercentageNeverDecreasesAndAnUnusedLimitStaysUnused) {
  const auto seed = new_seed();
  Dice dice(seed);
  int changed = 0, aligned = 0;
  for (int i = 0; i < 40'000 && !testing::Test::HasFailure(); ++i) {
    const Case from = dice.limiter();
    const Case to = dice.limiter();
    if (from.limiter.index() != to.limiter.index()) continue;
    Cell cell;
    TimePoint now = kStart;
    for (int request = 0; request < 6; ++request) {
      const auto next = step(from.limiter, cell, now, dice.magnitude(1, from.capacity));
      if (next.outcome.allowed) cell = next.next;
      now += dice.pause(from);
      if (now > kStart + std::chrono::hours(24 * 36'525)) break;
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << i << ": " << from << " to " << to);
    EXPECT_EQ(left(from.limiter, rescaled(from.limiter, cell, from.limiter, now), now),
              left(from.limiter, cell, now));
    const auto converted = rescaled(from.limiter, cell, to.limiter, now);
    const auto fresh = left(to.limiter, {}, now);
    EXPECT_LE(left(to.limiter, converted, now), fresh);
    if (drained_at(from.limiter, cell) <= now) {
      EXPECT_EQ(left(to.limiter, converted, now), fresh);
    } else if (changes_align(from.limiter, to.limiter)) {
      const auto used = quota(from.limiter) - left(from.limiter, cell, now);
      EXPECT_EQ(left(to.limiter, converted, now), fresh - std::min<Cost>(used, fresh));
      ++aligned;
    } else if (from.algorithm != Algorithm::LeakyBucket) {
      ++changed;
      __extension__ using Product = unsigned __int128;
      EXPECT_LE(Product{left(to.limiter, converted, now)} * quota(from.limiter),
                Product{left(from.limiter, cell, now) + 1} * quota(to.limiter));
    }
  }
  EXPECT_GT(changed, 1000);
  EXPECT_GT(aligned, 50);
}

}  // namespace
}  // namespace weir::limit
