#include "redis/prefetch/grant.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/redis/shared_grants.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Limiter;

// Redis's time at the start of each test. It is a multiple of 10 s, so a window of 10 s begins at it.
constexpr base::TimePoint kRedisTime{base::Duration(1'700'000'000'000'000)};
const Grant::Time kHere{1000s};

// Each unit has a time slot of 1 ms. The capacity is 100 units.
const Limiter kBucket = limit::TokenBucket::make({1000, 1s}, 100).value();

limit::Charge line_of(const Limiter& limiter, limit::Cost cost) {
  return {.key = {1, 2}, .limiter = &limiter, .cost = cost, .lease = 25};
}
// Makes a grant of `units` units that Redis has charged after `spent` other units.
Grant bucket_grant(limit::Cost units, limit::Cost spent = 0, const Limiter& limiter = kBucket) {
  const auto& gcra_core = *limit::gcra_core(limiter);
  const auto begin = gcra_core.ticks(kRedisTime) +
                     limit::Ticks{spent} * static_cast<std::uint64_t>(gcra_core.rate().period.count());
  return Grant(1, line_of(limiter, units),
               {.sent = kHere, .received = kHere + 1ms, .charged_at = kRedisTime, .begin = begin}, {});
}
Grant window_grant(const Limiter& limiter, limit::Cost units, base::Duration into) {
  return Grant(1, line_of(limiter, units),
               {.sent = kHere, .received = kHere + 1ms, .charged_at = kRedisTime + into}, 3s);
}

TEST(Grant, UnitsOfAFullBucketExpireAsTheBucketRefills) {
  const auto grant = bucket_grant(20);
  // The first unit's time slot begins at kRedisTime. Redis's clock may be a microsecond past that.
  EXPECT_EQ(grant.ready(kHere), 19U);
  EXPECT_EQ(grant.ready(kHere + 5ms), 14U);
  EXPECT_EQ(grant.ready(kHere + 19ms), 0U);
}

TEST(Grant, UnitsOfAPartlyUsedBucketExpireAtTheirTimeSlots) {
  const auto grant = bucket_grant(20, 70);
  EXPECT_EQ(grant.ready(kHere + 65ms), 20U);
  EXPECT_EQ(grant.ready(kHere + 75ms), 14U);
}

TEST(Grant, UnitsThatExpireFirstAreSpentFirst) {
  auto grant = bucket_grant(20);
  limit::Outcome outcome;
  grant.spend(4, kHere + 9ms, outcome);
  EXPECT_EQ(grant.expired(), 10U) << "ten units have expired";
  EXPECT_EQ(grant.left(), 6U);
  EXPECT_EQ(grant.ready(kHere + 13ms), 6U) << "the spent units would have expired next";
  EXPECT_EQ(grant.ready(kHere + 14ms), 5U);
}

TEST(Grant, UnitsExpireEarlierInCaseRedisHasAFasterClock) {
  EXPECT_EQ(bucket_grant(20, 2048 + 5).ready(kHere + 2048ms), 20U);
  EXPECT_EQ(bucket_grant(20, 2048 + 1).ready(kHere + 2048ms), 18U) << "Redis may be 2 ms ahead by now";
}

// A grant takes back units only if their time slots are next to its own time slots.
TEST(Grant, RefundedUnitIsAddedToTheGrantIfItsTimeSlotIsAdjacent) {
  auto grant = bucket_grant(20, 70);
  limit::Outcome first, second;
  grant.spend(3, kHere, first);
  grant.spend(2, kHere, second);
  EXPECT_EQ(first.slots_begin, limit::gcra_core(kBucket)->ticks(kRedisTime + 70ms));
  EXPECT_EQ(second.slots_begin, limit::gcra_core(kBucket)->ticks(kRedisTime + 73ms));
  EXPECT_FALSE(grant.put_back(line_of(kBucket, 3), first))
      << "the second range lies between the first range and the grant";
  EXPECT_TRUE(grant.put_back(line_of(kBucket, 2), second));
  EXPECT_TRUE(grant.put_back(line_of(kBucket, 3), first));
  EXPECT_EQ(grant.ready(kHere), 20U);
  grant.spend(20, kHere, first);
  EXPECT_TRUE(grant.put_back(line_of(kBucket, 20), first))
      << "a grant without units still accepts its last range";
  EXPECT_EQ(grant.ready(kHere), 20U);
  grant.spend(3, kHere, first);
  grant.spend(2, kHere, second);
  auto new_grant = grant.grant_for_spent(2, line_of(kBucket, 3), first);
  ASSERT_TRUE(new_grant);
  EXPECT_TRUE(new_grant->put_back(line_of(kBucket, 2), second)) << "the second range follows the first range";
  EXPECT_EQ(new_grant->ready(kHere), 5U);
  EXPECT_EQ(new_grant->ready(kHere + 72ms), 2U);
  second.debited_at = kRedisTime + 1ms;
  auto later = grant.grant_for_spent(3, line_of(kBucket, 2), second);
  ASSERT_TRUE(later);
  later->spend(1, kHere, second);
  EXPECT_EQ(second.debited_at, kRedisTime + 1ms);
  EXPECT_TRUE(later->put_back(line_of(kBucket, 1), second))
      << "the outcome has an earlier clock reading than the grant";
}

TEST(Grant, RefundedUnitOfAnEarlierPrefetchOrAnotherWindowIsNotAddedToTheGrant) {
  const Limiter fixed = limit::FixedWindow::make({100, 10s}).value();
  auto before = window_grant(fixed, 20, 4s), after = window_grant(fixed, 20, 5s);
  limit::Outcome outcome;
  before.spend(1, kHere, outcome);
  EXPECT_FALSE(after.put_back(line_of(fixed, 1), outcome));
  EXPECT_TRUE(before.put_back(line_of(fixed, 1), outcome));
  EXPECT_EQ(before.left(), 20U);
  before.spend(1, kHere, outcome);
  EXPECT_FALSE(window_grant(fixed, 20, 14s).put_back(line_of(fixed, 1), outcome))
      << "the unit is of another window";
}

TEST(Grant, UnitsOfAWindowLastUntilTheWindowEnds) {
  const Limiter fixed = limit::FixedWindow::make({100, 10s}).value();
  const Limiter weighted = limit::SlidingWindow::make({100, 10s}).value();
  const Limiter buckets = limit::SlidingLog::make({100, 10s}, 5).value();
  for (const auto* limiter : {&fixed, &weighted}) {
    const auto grant = window_grant(*limiter, 20, 4s);
    EXPECT_EQ(grant.ready(kHere + 5990ms), 20U);
    EXPECT_EQ(grant.ready(kHere + 5995ms), 0U) << "Redis may be 5.9 ms ahead";
  }
  EXPECT_EQ(window_grant(buckets, 20, 5s).ready(kHere + 990ms), 20U);
  EXPECT_EQ(window_grant(buckets, 20, 5s).ready(kHere + 1s), 0U) << "a sub-window is 2 s";
}

TEST(Grant, PrefetchedUnitsOfOneWindowCanBeMerged) {
  const Limiter fixed = limit::FixedWindow::make({100, 10s}).value();
  auto grant = window_grant(fixed, 20, 4s);
  EXPECT_TRUE(grant.merge(window_grant(fixed, 5, 6s)));
  EXPECT_FALSE(grant.merge(window_grant(fixed, 5, 11s)));
  EXPECT_EQ(grant.left(), 25U);
}

TEST(Grant, UnusedUnitsAreReturnedInOneRefund) {
  const Limiter fixed = limit::FixedWindow::make({100, 10s}).value();
  const auto window = window_grant(fixed, 20, 4s).refund_of_unspent(line_of(fixed, 1), kHere);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->departure, kRedisTime + 4s);
  EXPECT_EQ(window->charge.cost, 20U);

  auto grant = bucket_grant(20, 70);
  limit::Outcome outcome;
  grant.spend(5, kHere, outcome);
  const auto bucket = grant.refund_of_unspent(line_of(kBucket, 1), kHere);
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->begin, limit::gcra_core(kBucket)->ticks(kRedisTime + 75ms))
      << "the first slot of the units";
  EXPECT_EQ(bucket->departure, kRedisTime) << "the time of the charge";
  EXPECT_EQ(bucket->charge.cost, 15U);
  EXPECT_TRUE(grant.refund_of_unspent(line_of(kBucket, 1), kHere + 89500us))
      << "half of the last slot is still to come";
  EXPECT_FALSE(grant.refund_of_unspent(line_of(kBucket, 1), kHere + 91ms)) << "the unit has expired";
}

TEST(Grant, ExactLogOrQueueOrStepwiseBucketOrConcurrencyLimitCannotPrefetch) {
  EXPECT_TRUE(can_be_leased(kBucket));
  EXPECT_TRUE(can_be_leased(limit::Gcra::make({1, 1s}, 5).value()));
  EXPECT_FALSE(can_be_leased(limit::SlidingLog::make({5, 1s}).value()));
  EXPECT_FALSE(can_be_leased(limit::SteppedBucket::make({5, 1s}, 5).value()));
  EXPECT_FALSE(can_be_leased(limit::LeakyBucket::make({5, 1s}, 5, base::kForever).value()));
  EXPECT_FALSE(can_be_leased(limit::Concurrency::make(5).value()));
}

}  // namespace
}  // namespace weir::redis
