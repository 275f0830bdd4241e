#include "redis/prefetch/grant_cache.hpp"

#include "weir/limit/limiter.hpp"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Cost;

constexpr base::TimePoint kRedis{base::Duration(1'700'000'000'000'000)};
const limit::Limiter kWindow = limit::FixedWindow::make({100'000, std::chrono::hours(1000)}).value();

// A cache of two sets of four entries; the keys of all tests belong to one set. There is no Redis: the tests
// pass its answers to the cache.
class GrantCacheTest : public ::testing::Test {
 protected:
  static limit::Charge line(std::uint64_t key = 1, Cost lease = 1000) {
    return {.key = {8 * key, 8 * key}, .limiter = &kWindow, .lease = lease};
  }
  RoundTrip trip() const { return {.sent = now_, .received = now_, .charged_at = kRedis}; }

  // Sends one request to Redis, because the cache has no units for it. `left`: the number of units that Redis
  // has left.
  void go(std::uint64_t key = 1, Cost left = 50'000) {
    limit::Outcome outcome;
    ASSERT_FALSE(cache_.spend(line(key), now_, outcome));
    cache_.note_trip(line(key), now_);
    cache_.learn(line(key), {.allowed = true, .remaining = left});
  }
  void heat(std::uint64_t key = 1, Cost left = 50'000) {
    for (unsigned i = 0; i < GrantCache::kHot; ++i) go(key, left);
  }
  // Makes a key hot (so busy that the cache prefetches units), even if the cache has units for it.
  void heat(const limit::Charge& request, Cost left = 50'000) {
    for (unsigned i = 0; i < GrantCache::kHot; ++i) cache_.note_trip(request, now_);
    cache_.learn(request, {.allowed = true, .remaining = left});
  }
  // Takes as many units as the cache wants, if Redis has that many. Returns the number of units taken.
  Cost take(std::uint64_t key = 1, Cost left = 50'000) {
    auto lease = line(key);
    lease.cost = cache_.wanted(lease, now_);
    const bool fits = lease.cost <= left;
    if (lease.cost > 0)
      cache_.arrived(lease, trip(), {.allowed = fits, .remaining = fits ? left - lease.cost : left}, back_);
    return lease.cost;
  }
  Cost spend_all(std::uint64_t key = 1) {
    Cost spent = 0;
    for (limit::Outcome outcome; cache_.spend(line(key), now_, outcome);) ++spent;
    return spent;
  }

  GrantCache cache_{8, 1s};
  GrantCache::Time now_{1000s};
  std::vector<Refund> back_;
};

TEST_F(GrantCacheTest, NoUnitsArePrefetchedForAKeyWithFewRequests) {
  for (int i = 0; i < 20; ++i) {
    go();
    EXPECT_EQ(take(), 0U);
    // At most three requests come within a quarter of the hold time (250 ms). A hot key has four (kHot).
    now_ += 100ms;
  }
}

TEST_F(GrantCacheTest, EachPrefetchForABusyKeyIsTwiceAsLargeUpToTheLeaseSetting) {
  heat();
  for (const Cost expected : {8, 16, 32, 64, 128, 256, 512, 1000, 1000}) {
    EXPECT_EQ(take(), expected);
    EXPECT_EQ(spend_all(), expected);
    now_ += 10ms;
  }
}

TEST_F(GrantCacheTest, FewerUnitsArePrefetchedForAKeyThatBecomesLessBusy) {
  heat();
  for (int i = 0; i < 4; ++i) {
    take();
    spend_all();
  }
  now_ += 1100ms;
  EXPECT_EQ(take(), 32U);
}

TEST_F(GrantCacheTest, MoreUnitsArePrefetchedBeforeTheHeldUnitsAreUsedUp) {
  heat();
  ASSERT_EQ(take(), 8U);
  limit::Outcome outcome;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cache_.spend(line(), now_, outcome));
  EXPECT_EQ(outcome.remaining, 3U);
  EXPECT_EQ(take(), 0U);
  ASSERT_TRUE(cache_.spend(line(), now_, outcome));
  EXPECT_EQ(cache_.wanted(line(), now_), 16U);
  EXPECT_EQ(cache_.wanted(line(), now_), 0U) << "one grant at a time";
}

TEST_F(GrantCacheTest, FewUnitsArePrefetchedIfFewRemainInRedis) {
  heat(1, 40);
  EXPECT_EQ(take(1, 40), 8U);
  spend_all();
  EXPECT_EQ(take(1, 31), 8U) << "a quarter of 32";
  spend_all();
  EXPECT_EQ(take(1, 3), 5U) << "a quarter of 23; other requests took the rest";
  EXPECT_EQ(spend_all(), 0U);
  EXPECT_EQ(take(1, 3), 0U) << "a quarter of 3 is too few for a round trip";
  EXPECT_TRUE(back_.empty());
}

TEST_F(GrantCacheTest, PrefetchedUnitsOfAnIdleKeyAreReturned) {
  heat();
  take();
  limit::Outcome outcome;
  ASSERT_TRUE(cache_.spend(line(), now_, outcome));
  cache_.sweep(now_ + 999ms, back_, 1000);
  EXPECT_TRUE(back_.empty());
  cache_.sweep(now_ + 1s, back_, 1000);
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 7U);
  EXPECT_EQ(back_[0].departure, kRedis);
  EXPECT_FALSE(cache_.spend(line(), now_, outcome));
  EXPECT_EQ(cache_.stats().held(), 0U);
}

TEST_F(GrantCacheTest, OldPrefetchedUnitsOfAWindowAreReturnedEvenIfTheKeyIsInUse) {
  heat();
  take();
  limit::Outcome outcome;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache_.spend(line(), now_, outcome));
    now_ += 250ms;
    cache_.sweep(now_, back_, 1000);
  }
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 4U);
}

TEST_F(GrantCacheTest, PrefetchedUnitsOfABucketAreReturnedOnlyIfTheKeyIsIdle) {
  const limit::Limiter bucket = limit::TokenBucket::make({1, std::chrono::hours(1)}, 10'000).value();
  auto request = line();
  request.limiter = &bucket;
  const auto begin = limit::gcra_core(bucket)->ticks(kRedis + 100h);
  const RoundTrip drawn_on{.sent = now_, .received = now_, .charged_at = kRedis, .begin = begin};
  heat(request, 5000);
  auto lease = request;
  lease.cost = cache_.wanted(request, now_);
  cache_.arrived(lease, drawn_on, {.allowed = true, .remaining = 4992}, back_);
  limit::Outcome outcome;
  for (int i = 0; i < 4; ++i) {
    now_ += 900ms;
    ASSERT_TRUE(cache_.spend(request, now_, outcome));
    cache_.sweep(now_, back_, 1000);
  }
  EXPECT_TRUE(back_.empty()) << "units are kept while the key is used";
  cache_.sweep(now_ + 1s, back_, 1000);
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 4U);
  EXPECT_EQ(back_[0].begin, limit::gcra_core(bucket)->ticks(kRedis + 104h))
      << "the first slot of the returned units";
}

TEST_F(GrantCacheTest, RefundedUnitsCanBeSpentAgain) {
  heat();
  take();
  limit::Outcome first, second;
  ASSERT_TRUE(cache_.spend(line(), now_, first));
  cache_.put_back(line(), first, back_);
  ASSERT_TRUE(cache_.spend(line(), now_, second));
  EXPECT_EQ(first.remaining, second.remaining);
  EXPECT_TRUE(back_.empty());
}

TEST_F(GrantCacheTest, UnitOfAFailedRequestIsReturnedToRedisEvenIfAllOtherUnitsOfItsKeyWereReturnedBefore) {
  heat();
  take();
  limit::Outcome outcome;
  ASSERT_TRUE(cache_.spend(line(), now_, outcome));
  now_ += 1s;
  cache_.sweep(now_, back_, 1000);
  ASSERT_EQ(back_.size(), 1U);
  cache_.put_back(line(), outcome, back_);
  ASSERT_EQ(back_.size(), 2U);
  EXPECT_EQ(back_[1].charge.cost, 1U);
  EXPECT_EQ(back_[1].departure, kRedis);
  EXPECT_EQ(cache_.stats().held(), 0U);
  EXPECT_EQ(cache_.stats().lost, 0U);
}

// Between the spending of a unit and its refund, somebody resets the key. The reset erases the unit's charge
// in Redis, but not the charges of units that are prefetched later.
TEST_F(GrantCacheTest, UnitRefundedAfterAResetIsNotAddedToUnitsPrefetchedLater) {
  heat();
  take();
  limit::Outcome outcome;
  ASSERT_TRUE(cache_.spend(line(), now_, outcome));
  cache_.forget(line());
  heat();
  auto lease = line();
  lease.cost = cache_.wanted(lease, now_);
  cache_.arrived(lease, {.sent = now_, .received = now_, .charged_at = kRedis + 1ms},
                 {.allowed = true, .remaining = 1000}, back_);
  cache_.put_back(line(), outcome, back_);
  EXPECT_EQ(spend_all(), lease.cost);
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].departure, kRedis);
}

// Otherwise a few units would be left over at the end of each grant: too few for a request.
TEST_F(GrantCacheTest, NumberOfPrefetchedUnitsIsAMultipleOfTheCostOfARequest) {
  for (const Cost cost : {3U, 5U, 7U, 10U}) {
    const std::uint64_t key = cost;
    auto request = line(key);
    request.cost = cost;
    heat(request, 50'000);
    for (int round = 0; round < 10; ++round) {
      auto lease = request;
      lease.cost = cache_.wanted(request, now_);
      ASSERT_GE(lease.cost, 2 * cost) << cost << ", " << round;
      EXPECT_EQ(lease.cost % cost, 0U);
      cache_.arrived(lease, trip(), {.allowed = true, .remaining = 50'000}, back_);
      Cost spent = 0;
      for (limit::Outcome outcome; cache_.spend(request, now_, outcome);) spent += cost;
      EXPECT_EQ(spent, lease.cost);
    }
  }
}

// An expensive request raises the size of the key's next grant. The grant for later cheap requests must still
// be bounded by the lease (40). The cache asks for a grant only while it holds at most a quarter of that.
TEST_F(GrantCacheTest, AtMostFiveQuartersOfTheLeaseSettingArePrefetchedForAnyCost) {
  Cost held = 0;
  for (int round = 0; round < 20; ++round) {
    auto dear = line(1, 40), cheap = line(1, 40);
    dear.cost = 45;
    heat(dear);
    EXPECT_EQ(cache_.wanted(dear, now_), 0U) << "a lease has fewer units";
    auto lease = cheap;
    lease.cost = cache_.wanted(cheap, now_);
    held += lease.cost;
    if (lease.cost > 0) cache_.arrived(lease, trip(), {.allowed = true, .remaining = 50'000}, back_);
    now_ += 300ms;
  }
  EXPECT_LE(held, 50U);
  EXPECT_GE(held, 40U);
}

TEST_F(GrantCacheTest, PrefetchedUnitsTooFewForARequestAreReplaced) {
  const limit::Limiter bucket = limit::TokenBucket::make({1, 1h}, 10'000).value();
  auto small = line(), large = line();
  small.limiter = large.limiter = &bucket;
  small.cost = 2, large.cost = 5;
  heat(small, 5000);
  for (int round = 0; round < 4; ++round) {
    auto lease = small;
    lease.cost = 4;
    (void)cache_.wanted(small, now_);
    const auto begin = limit::gcra_core(bucket)->ticks(kRedis + 100h + round * 10h);
    const RoundTrip drawn_on{.sent = now_, .received = now_, .charged_at = kRedis, .begin = begin};
    cache_.arrived(lease, drawn_on, {.allowed = true, .remaining = 5000}, back_);
  }
  cache_.note_trip(large, now_);
  EXPECT_GT(cache_.wanted(large, now_), 0U);
}

TEST_F(GrantCacheTest, NoUnitsArePrefetchedForAWhileAfterAFailedPrefetch) {
  heat();
  ASSERT_EQ(cache_.wanted(line(), now_), 8U);
  cache_.failed(line(), now_);
  EXPECT_EQ(cache_.wanted(line(), now_ + 249ms), 0U);
  EXPECT_GT(cache_.wanted(line(), now_ + 250ms), 0U);
}

// The reset comes after Redis has charged the units, so Redis has forgotten that charge.
TEST_F(GrantCacheTest, UnitsThatArriveAfterAResetOfTheirKeyAreNeverSpent) {
  heat();
  auto lease = line();
  lease.cost = cache_.wanted(lease, now_);
  ASSERT_GT(lease.cost, 0U);
  cache_.forget(line());
  cache_.arrived(lease, trip(), {.allowed = true, .remaining = 1000}, back_);
  EXPECT_EQ(spend_all(), 0U);
  EXPECT_TRUE(back_.empty());
  EXPECT_EQ(cache_.stats().held(), 0U);
  heat();
  EXPECT_GT(take(), 0U);
  EXPECT_GT(spend_all(), 0U);
}

TEST_F(GrantCacheTest, KeysForWhichTheFullCacheHasNoRoomAreCounted) {
  for (std::uint64_t key = 1; key <= 4; ++key) {
    heat(key);
    EXPECT_EQ(take(key), 8U);
  }
  heat(5);
  EXPECT_EQ(take(5), 0U);
  EXPECT_EQ(cache_.stats().rejected_keys, GrantCache::kHot);
  EXPECT_EQ(spend_all(1), 8U);
  heat(5);
  EXPECT_EQ(take(5), 8U) << "in place of a key without units";
}

}  // namespace
}  // namespace weir::redis
