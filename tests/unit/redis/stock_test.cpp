#include "redis/stock.hpp"

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

// A stock of keys that are found in one set, and a Redis that has whatever it is said to have.
class StockTest : public ::testing::Test {
 protected:
  static limit::Charge line(std::uint64_t key = 1, Cost lease = 1000) {
    return {.key = {8 * key, 8 * key}, .limiter = &kWindow, .lease = lease};
  }
  Trip trip() const { return {.sent = now_, .received = now_, .charged_at = kRedis}; }

  // A request that finds nothing here.
  void go(std::uint64_t key = 1, Cost left = 50'000) {
    limit::Outcome outcome;
    ASSERT_FALSE(stock_.spend(line(key), now_, outcome));
    stock_.note_trip(line(key), now_);
    stock_.learn(line(key), trip(), {.allowed = true, .remaining = left});
  }
  void heat(std::uint64_t key = 1, Cost left = 50'000) {
    for (unsigned i = 0; i < Stock::kHot; ++i) go(key, left);
  }
  // Takes what is wanted, if Redis has it.
  Cost take(std::uint64_t key = 1, Cost left = 50'000) {
    auto lease = line(key);
    lease.cost = stock_.wanted(lease, now_);
    const bool fits = lease.cost <= left;
    if (lease.cost > 0)
      stock_.arrived(lease, trip(), {.allowed = fits, .remaining = fits ? left - lease.cost : left}, back_);
    return lease.cost;
  }
  Cost spend_all(std::uint64_t key = 1) {
    Cost spent = 0;
    for (limit::Outcome outcome; stock_.spend(line(key), now_, outcome);) ++spent;
    return spent;
  }

  Stock stock_{8, 1s};
  Stock::Time now_{1000s};
  std::vector<Refund> back_;
};

TEST_F(StockTest, AColdKeyGetsNothing) {
  for (int i = 0; i < 20; ++i) {
    go();
    EXPECT_EQ(take(), 0U);
    now_ += 100ms;  // three in a span
  }
}

TEST_F(StockTest, AHotKeyGetsTwiceAsMuchEachTimeThatItIsGoneSoon) {
  heat();
  for (const Cost expected : {8, 16, 32, 64, 128, 256, 512, 1000, 1000}) {
    EXPECT_EQ(take(), expected);
    EXPECT_EQ(spend_all(), expected);
    now_ += 10ms;
  }
}

TEST_F(StockTest, AKeyThatCoolsGetsLessAgain) {
  heat();
  for (int i = 0; i < 4; ++i) {
    take();
    spend_all();
  }
  now_ += 1100ms;
  EXPECT_EQ(take(), 32U);
}

TEST_F(StockTest, TakesMoreBeforeItHasNothing) {
  heat();
  ASSERT_EQ(take(), 8U);
  limit::Outcome outcome;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stock_.spend(line(), now_, outcome));
  EXPECT_EQ(outcome.remaining, 3U);
  EXPECT_EQ(take(), 0U);
  ASSERT_TRUE(stock_.spend(line(), now_, outcome));
  EXPECT_EQ(stock_.wanted(line(), now_), 16U);
  EXPECT_EQ(stock_.wanted(line(), now_), 0U) << "one at a time";
}

TEST_F(StockTest, NearTheEndOfALimitItAsksForLittle) {
  heat(1, 40);
  EXPECT_EQ(take(1, 40), 8U);
  spend_all();
  EXPECT_EQ(take(1, 31), 8U) << "a quarter of 32";
  spend_all();
  EXPECT_EQ(take(1, 3), 5U) << "a quarter of 23; others had the rest";
  EXPECT_EQ(spend_all(), 0U);
  EXPECT_EQ(take(1, 3), 0U) << "a quarter of 3 is not worth a trip";
  EXPECT_TRUE(back_.empty());
}

TEST_F(StockTest, WhatNobodyAsksForGoesBack) {
  heat();
  take();
  limit::Outcome outcome;
  ASSERT_TRUE(stock_.spend(line(), now_, outcome));
  stock_.sweep(now_ + 999ms, back_, 1000);
  EXPECT_TRUE(back_.empty());
  stock_.sweep(now_ + 1s, back_, 1000);
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 7U);
  EXPECT_EQ(back_[0].departure, kRedis);
  EXPECT_FALSE(stock_.spend(line(), now_, outcome));
  EXPECT_EQ(stock_.stats().held(), 0U);
}

TEST_F(StockTest, WhatIsLeftOfAWindowGoesBackThoughTheKeyIsAskedFor) {
  heat();
  take();
  limit::Outcome outcome;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(stock_.spend(line(), now_, outcome));
    now_ += 250ms;
    stock_.sweep(now_, back_, 1000);
  }
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 4U);
}

TEST_F(StockTest, WhatIsLeftOfABucketGoesBackOnceNobodyAsks) {
  const limit::Limiter bucket = limit::TokenBucket::make({1, std::chrono::hours(1)}, 10'000).value();
  auto request = line();
  request.limiter = &bucket;
  const auto begin = limit::spacing(bucket)->ticks(kRedis + 100h);
  const Trip drawn_on{.sent = now_, .received = now_, .charged_at = kRedis, .begin = begin};
  for (unsigned i = 0; i < Stock::kHot; ++i) {
    stock_.note_trip(request, now_);
    stock_.learn(request, drawn_on, {.allowed = true, .remaining = 5000});
  }
  auto lease = request;
  lease.cost = stock_.wanted(request, now_);
  stock_.arrived(lease, drawn_on, {.allowed = true, .remaining = 4992}, back_);
  limit::Outcome outcome;
  for (int i = 0; i < 4; ++i) {
    now_ += 900ms;
    ASSERT_TRUE(stock_.spend(request, now_, outcome));
    stock_.sweep(now_, back_, 1000);
  }
  EXPECT_TRUE(back_.empty()) << "it keeps while it is asked for";
  stock_.sweep(now_ + 1s, back_, 1000);
  ASSERT_EQ(back_.size(), 1U);
  EXPECT_EQ(back_[0].charge.cost, 4U);
  EXPECT_EQ(back_[0].begin, limit::spacing(bucket)->ticks(kRedis + 104h)) << "where its slots begin";
}

TEST_F(StockTest, WhatCameToNothingIsThereAgain) {
  heat();
  take();
  limit::Outcome first, second;
  ASSERT_TRUE(stock_.spend(line(), now_, first));
  stock_.put_back(line(), first.lot);
  ASSERT_TRUE(stock_.spend(line(), now_, second));
  EXPECT_EQ(first.remaining, second.remaining);
  stock_.put_back(line(), second.lot + 1);
  EXPECT_EQ(stock_.stats().lost, 1U) << "of no lot that is here";
}

TEST_F(StockTest, AfterAFailureItWaits) {
  heat();
  ASSERT_EQ(stock_.wanted(line(), now_), 8U);
  stock_.failed(line(), now_);
  EXPECT_EQ(stock_.wanted(line(), now_ + 249ms), 0U);
  EXPECT_GT(stock_.wanted(line(), now_ + 250ms), 0U);
}

// The reset came after the debit: what Redis has debited it has forgotten.
TEST_F(StockTest, WhatWasOnItsWayWhenTheKeyWasResetIsSpentByNobody) {
  heat();
  auto lease = line();
  lease.cost = stock_.wanted(lease, now_);
  ASSERT_GT(lease.cost, 0U);
  stock_.forget(line());
  stock_.arrived(lease, trip(), {.allowed = true, .remaining = 1000}, back_);
  EXPECT_EQ(spend_all(), 0U);
  EXPECT_TRUE(back_.empty());
  EXPECT_EQ(stock_.stats().held(), 0U);
  heat();
  EXPECT_GT(take(), 0U);
  EXPECT_GT(spend_all(), 0U);
}

// Two slots behind what was charged before, each time.
TEST_F(StockTest, WhatATripChargedOfABucketGoesBackByItsPlace) {
  const limit::Limiter bucket = limit::TokenBucket::make({1, 1h}, 10'000).value();
  auto request = line();
  request.limiter = &bucket;
  request.cost = 2;
  const auto begin = [&](unsigned trip) { return limit::spacing(bucket)->ticks(kRedis + 100h + trip * 2h); };
  const auto charged_at = [](unsigned trip) { return kRedis + trip * 1s; };
  stock_.note_trip(request, now_);
  for (unsigned i = 0; i <= Stock::kTrips; ++i) {
    const Trip trip{.sent = now_, .received = now_, .charged_at = charged_at(i), .begin = begin(i)};
    stock_.learn(request, trip, {.allowed = true, .remaining = 5000});
    stock_.learn(request, trip, {.allowed = false, .remaining = 5000});
  }
  EXPECT_EQ(stock_.refund_of(request, charged_at(0)).begin, 0) << "too many trips ago";
  EXPECT_EQ(stock_.refund_of(request, charged_at(1)).begin, begin(1));
  EXPECT_EQ(stock_.refund_of(request, charged_at(1)).begin, 0) << "it has gone back";
  EXPECT_EQ(stock_.refund_of(request, charged_at(Stock::kTrips)).begin, begin(Stock::kTrips));
  stock_.forget(request);
  EXPECT_EQ(stock_.refund_of(request, charged_at(2)).begin, 0);
}

TEST_F(StockTest, AKeyThatFindsNoPlaceIsCounted) {
  for (std::uint64_t key = 1; key <= 4; ++key) {
    heat(key);
    EXPECT_EQ(take(key), 8U);
  }
  heat(5);
  EXPECT_EQ(take(5), 0U);
  EXPECT_EQ(stock_.stats().crowded, Stock::kHot);
  EXPECT_EQ(spend_all(1), 8U);
  heat(5);
  EXPECT_EQ(take(5), 8U) << "in place of one that holds nothing";
}

}  // namespace
}  // namespace weir::redis
