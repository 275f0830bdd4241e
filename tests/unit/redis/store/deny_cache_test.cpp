#include "redis/store/deny_cache.hpp"

#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <array>
#include <random>
#include <string>

namespace weir::redis {
namespace {

using limit::Charge;
using limit::Outcome;

constexpr base::TimePoint kEpoch{base::Duration(1'800'000'000'000'000)};

// A cache of refusals, and the scripts on a Redis whose clock the test sets. This host's steady clock is at
// `begin_` when Redis's clock is at kEpoch.
class CachedRefusals : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  LastRefunds refunds_;
  DenyCache cache_{refunds_};
  const DenyCache::Time begin_ = std::chrono::steady_clock::now();
  base::TimePoint now_ = kEpoch;
  base::Duration trip_{0};

  [[nodiscard]] DenyCache::Time ours() const { return begin_ + (now_ - kEpoch); }

  // Charges a request in Redis. Redis reads its clock at the end of the round trip, which takes trip_.
  // Returns true if Redis admitted the request.
  bool ask(std::span<const Charge> bill, std::span<Outcome> outcomes) {
    scripts_.set_clock(now_);
    const auto reply = scripts_.charge(bill);
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(reply, bill, outcomes, then), ReplyReading::Answer);
    const auto answers = answers_of_refused(reply, {0, 1, 0, bill.size()}, bill);
    if (answers.empty())
      cache_.forget(bill);
    else
      cache_.remember(bill, answers, {ours() - trip_, ours(), then});
    return answers.empty();
  }
  bool ask(std::span<const Charge> bill) {
    std::vector<Outcome> outcomes(bill.size());
    return ask(bill, outcomes);
  }
  bool refuses(std::span<const Charge> bill) {
    std::vector<Outcome> outcomes(bill.size());
    return cache_.refuses(bill, outcomes, ours()).has_value();
  }

  limit::Limiter one_a_second_ = token_bucket({1, 1s}, 1);
  limit::Limiter two_a_second_ = token_bucket({2, 1s}, 4);
  const limit::Key key_{1, 2}, other_{3, 4};
};

// Checks the cache's guarantee: if the cache refuses, Redis would return the same outcome.
TEST_F(CachedRefusals, EqualTheRefusalsThatRedisWouldGive) {
  limit::Dice dice(limit::new_seed());
  std::array<unsigned, limit::kAlgorithms> denied{};
  for (int round = 0; round < 400; ++round) {
    scripts_.forget_all();
    cache_.forget_all();
    const auto rule = [&] {
      for (;;)
        if (auto any = dice.limiter(); is_known(any.limiter)) return any;
    }();
    const auto static_cost = dice.one_in(3) ? dice.cost(rule) : 1;
    for (int step = 0; step < 40; ++step) {
      const bool log = std::holds_alternative<limit::SlidingLog>(rule.limiter);
      const Charge line{key_, &rule.limiter, log || dice.one_in(2) ? static_cost : dice.cost(rule)};
      Outcome here, there;
      const bool refused = cache_.refuses({&line, 1}, {&here, 1}, ours()).has_value();
      ask({&line, 1}, {&there, 1});
      if (refused) {
        ++denied[static_cast<std::size_t>(rule.algorithm)];
        EXPECT_FALSE(there.allowed) << rule << ", cost " << line.cost;
        // In a sliding log, `remaining` may grow when single entries expire, even while a higher cost is
        // still refused.
        if (log && line.cost > 1) here.remaining = there.remaining;
        EXPECT_EQ(here, there) << rule << ", cost " << line.cost << ": " << here.remaining
                               << " remaining and " << there.remaining << ", after "
                               << here.retry_after.count() << " us and " << there.retry_after.count();
      }
      now_ += std::min<base::Duration>(dice.pause(rule), dice.one_in(2) ? 999ms : 10ms);
    }
  }
  for (std::size_t i = 0; i < limit::kAlgorithms; ++i) {
    const auto algorithm = static_cast<limit::Algorithm>(i);
    if (algorithm == limit::Algorithm::LeakyBucket)
      EXPECT_EQ(denied[i], 0U);
    else
      EXPECT_GT(denied[i], 20U) << "algorithm " << i;
  }
}

TEST_F(CachedRefusals, AreNotUsedWhenRedisWouldAdmitAgain) {
  const std::array bill{Charge{key_, &two_a_second_, 4}};
  ASSERT_TRUE(ask(bill));
  ASSERT_FALSE(ask({{{key_, &two_a_second_, 1}}}));
  now_ += 499ms;  // half a second minus the possible drift of the clocks
  EXPECT_TRUE(refuses({{{key_, &two_a_second_, 1}}}));
  now_ += 1ms;
  EXPECT_FALSE(refuses({{{key_, &two_a_second_, 1}}}));
  EXPECT_TRUE(refuses({{{key_, &two_a_second_, 2}}}));  // a higher cost is still refused
}

// Redis read its clock at an unknown instant during the round trip. So Redis's clock may be ahead of weir's
// estimate by the whole round trip.
TEST_F(CachedRefusals, ExpireEarlierByTheRoundTripAndThePossibleClockDrift) {
  ASSERT_TRUE(ask({{{key_, &two_a_second_, 4}}}));
  trip_ = 300us;
  ASSERT_FALSE(ask({{{key_, &two_a_second_, 1}}}));
  now_ += 500ms - 300us - 489us;  // 489 us: the possible drift, 1/1024 of 500 ms, rounded up
  EXPECT_TRUE(refuses({{{key_, &two_a_second_, 1}}}));
  now_ += 3us;
  EXPECT_FALSE(refuses({{{key_, &two_a_second_, 1}}}));
}

TEST_F(CachedRefusals, ApplyOnlyIfTheCacheHasTheStatesOfAllChargesOfTheRequest) {
  const std::array both{Charge{key_, &one_a_second_}, Charge{other_, &two_a_second_}};
  ASSERT_TRUE(ask(both));
  EXPECT_FALSE(refuses(both));  // the cache is empty, because Redis has not refused anything yet
  ASSERT_FALSE(ask(both));
  now_ += 1ms;
  EXPECT_TRUE(refuses(both));
  EXPECT_TRUE(refuses({{both[0]}}));
  EXPECT_FALSE(refuses({{both[1]}}));
  // The cache has no state for the second charge, which might need a longer wait. So Redis must decide.
  EXPECT_FALSE(refuses({{both[0], Charge{{5, 6}, &two_a_second_}}}));
  std::array<Outcome, 2> outcomes;
  ASSERT_TRUE(cache_.refuses(both, outcomes, ours()));
  EXPECT_TRUE(outcomes[1].allowed);
}

// The cache cannot know how many permits are held, because every request releases its permits when it ends.
TEST_F(CachedRefusals, AreNotUsedForConcurrencyLimits) {
  const limit::Limiter one = limit::Concurrency::make(1).value();
  const std::array held{Charge{other_, &one}};
  const std::array both{Charge{key_, &one_a_second_}, held[0]};
  ASSERT_TRUE(ask(both));
  ASSERT_FALSE(ask(both));
  EXPECT_FALSE(refuses(both));
  EXPECT_FALSE(refuses(held));
  EXPECT_TRUE(refuses({{both[0]}}));
}

TEST_F(CachedRefusals, AreNotUsedForShadowRules) {
  ASSERT_TRUE(ask({{{key_, &one_a_second_}}}));
  const Charge shadow{key_, &one_a_second_, 1, 0, false};
  const std::array bill{shadow, Charge{other_, &one_a_second_}};
  ASSERT_TRUE(ask(bill));
  ASSERT_FALSE(ask(bill));
  EXPECT_TRUE(refuses(bill));
  EXPECT_FALSE(refuses({{shadow}}));
}

TEST_F(CachedRefusals, AreUsedForAtMostASecond) {
  const auto day = token_bucket({1, 24h}, 1);
  const std::array bill{Charge{key_, &day}};
  ASSERT_TRUE(ask(bill));
  ASSERT_FALSE(ask(bill));
  now_ += 749ms;
  EXPECT_TRUE(refuses(bill));
  now_ += 1ms;
  EXPECT_FALSE(refuses(bill));  // the state is as old as kFresh, so one request goes to Redis to renew it
  now_ += 19ms;
  EXPECT_TRUE(refuses(bill));  // the next request goes to Redis only after kRenewal, 20 ms
  now_ += 1ms;
  EXPECT_FALSE(refuses(bill));
  EXPECT_TRUE(refuses(bill));
  now_ += 229ms + 999us;
  EXPECT_FALSE(refuses(bill));
  EXPECT_TRUE(refuses(bill));
  now_ += 1us;
  EXPECT_FALSE(refuses(bill));
  EXPECT_FALSE(refuses(bill));
}

TEST_F(CachedRefusals, AreNotUsedAfterARefundOfTheKey) {
  const std::array bill{Charge{key_, &one_a_second_}};
  ASSERT_TRUE(ask(bill));
  ASSERT_FALSE(ask(bill));
  now_ += 1ms;
  refunds_.note(std::array{LastRefunds::group_of(other_)}, ours());
  EXPECT_TRUE(refuses(bill));
  refunds_.note(std::array{LastRefunds::group_of(key_)}, ours());
  EXPECT_FALSE(refuses(bill));
  now_ += 1ms;
  ASSERT_FALSE(ask(bill));  // sent after the refund, so the answer reflects the refund
  EXPECT_TRUE(refuses(bill));
}

// In each round, every client has the keys `key` and `other`, one for each of two rules. The keys differ in
// the bits `between`, which are the same for all clients, as weir's own keys do.
TEST_F(CachedRefusals, RefundOfAKeyRarelyDropsTheRefusalsOfAnotherKeyOfTheClient) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int together = 0;
  for (int rules = 0; rules < 1000; ++rules) {
    const auto between = random() & ~std::uint64_t{0xfff};
    for (int client = 0; client < 100; ++client) {
      const limit::Key key{random(), random()};
      const limit::Key other{key.lo, key.hi ^ between};
      together += LastRefunds::group_of(key) == LastRefunds::group_of(other) ? 1 : 0;
    }
  }
  EXPECT_LT(together, 500) << "of 100,000; one in 4,096 would be 24";
}

TEST_F(CachedRefusals, DoNotApplyAfterTheLimitOfTheRuleHasChanged) {
  ASSERT_TRUE(ask({{{key_, &one_a_second_}}}));
  ASSERT_FALSE(ask({{{key_, &one_a_second_}}}));
  EXPECT_FALSE(refuses({{{key_, &two_a_second_}}}));  // the rule has another limiter now
}

// A refund can leave a gap: free time slots of the bucket, between the slots of other charges. A lower cost
// may fit into a gap that was too small for the higher cost.
TEST_F(CachedRefusals, DoNotApplyToALowerCostIfTheRuleHasALease) {
  for (const limit::Cost lease : {0, 1}) {
    scripts_.forget_all();
    cache_.forget_all();
    const auto charge = [&](limit::Cost cost) {
      return Charge{.key = key_, .limiter = &two_a_second_, .cost = cost, .lease = lease};
    };
    const auto all = charge(4), dear = charge(3), cheap = charge(1);
    ASSERT_TRUE(ask({&all, 1}));
    ASSERT_FALSE(ask({&dear, 1}));
    EXPECT_TRUE(refuses({&dear, 1}));
    EXPECT_TRUE(refuses({&all, 1}));
    EXPECT_EQ(refuses({&cheap, 1}), lease == 0);
  }
}

// One charge of the bill fits into a gap that a refund has left. The bill's other charge is refused, so the
// bill is refused. The cache must not store Redis's answer about the gap: a later request may find the gap
// filled.
TEST_F(CachedRefusals, AreNotStoredForAChargeThatFitsIntoReturnedTimeSlots) {
  const limit::Limiter wide = token_bucket({1, 1s}, 100);
  const auto hot = [&](limit::Cost cost) {
    return Charge{.key = key_, .limiter = &wide, .cost = cost, .lease = 1};
  };
  std::array<Outcome, 1> outcomes;
  const std::array gap{hot(5)}, rest{hot(95)};
  ask(gap, outcomes);
  scripts_.refund(refund_of(gap[0], now_, outcomes[0]));
  ask(gap, outcomes);
  ASSERT_TRUE(ask(rest));
  scripts_.refund(refund_of(gap[0], now_, outcomes[0]));
  const Charge other{.key = other_, .limiter = &one_a_second_};
  ASSERT_TRUE(ask({&other, 1}));
  const std::array both{other, hot(5)}, dearer{other, hot(6)};
  ASSERT_FALSE(ask(both));
  EXPECT_FALSE(refuses(dearer)) << "the refusal would state half a second";
  EXPECT_FALSE(refuses(both));
}

TEST_F(CachedRefusals, OldestCachedRefusalIsEvictedFirst) {
  for (std::uint64_t i = 1; i <= 3; ++i) {  // three keys of one set of the cache, which has room for two
    const std::array bill{Charge{{1, i}, &one_a_second_}};
    ASSERT_TRUE(ask(bill));
    ASSERT_FALSE(ask(bill));
    now_ += 1ms;
  }
  EXPECT_FALSE(refuses({{{{1, 1}, &one_a_second_}}}));  // the oldest entry was evicted
  EXPECT_TRUE(refuses({{{{1, 2}, &one_a_second_}}}));
  EXPECT_TRUE(refuses({{{{1, 3}, &one_a_second_}}}));
}

// The tests below use the cache through a store.

class DenyingStore : public ::testing::Test {
 protected:
  Server server_;
  LastRefunds refunds_;
  limit::Limiter day_ = token_bucket({1, 24h}, 2);
  const std::vector<Charge> bill_{{{7, 7}, &day_}};
  std::array<Outcome, 1> outcome_;
};

TEST_F(DenyingStore, RequestAfterARefusalIsRefusedWithoutARoundTrip) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_TRUE(worker.charge(bill_).outcomes[0].allowed);
  EXPECT_TRUE(worker.charge(bill_).outcomes[0].allowed);
  EXPECT_FALSE(worker.store.refuses(bill_, outcome_));
  const auto refused = worker.charge(bill_);
  ASSERT_TRUE(worker.store.refuses(bill_, outcome_));
  EXPECT_FALSE(outcome_[0].allowed);
  EXPECT_LE(outcome_[0].retry_after, refused.outcomes[0].retry_after);
  EXPECT_GT(outcome_[0].retry_after, refused.outcomes[0].retry_after - 1s);
}

TEST_F(DenyingStore, CachedRefusalIsDroppedWhenAnotherWorkerRefundsTheKey) {
  Worker one(Worker::settings_for(server_), Worker::quick(), &refunds_);
  Worker two(Worker::settings_for(server_), Worker::quick(), &refunds_);
  ASSERT_TRUE(one.turn_until_up() && two.turn_until_up());
  reset_command_counts(server_);
  const auto charged = one.charge(bill_);
  EXPECT_TRUE(two.charge(bill_).outcomes[0].allowed);
  EXPECT_FALSE(two.charge(bill_).outcomes[0].allowed);
  ASSERT_TRUE(two.store.refuses(bill_, outcome_));
  one.store.refund(bill_[0], charged.now);
  EXPECT_FALSE(two.store.refuses(bill_, outcome_));
  const auto calls = [&] { return server_.info("commandstats", "cmdstat_evalsha"); };
  EXPECT_TRUE(one.turn_until([&] { return calls().starts_with("calls=4,"); }));
  EXPECT_TRUE(two.charge(bill_).outcomes[0].allowed);
}

TEST_F(DenyingStore, CachedRefusalIsDroppedWhenAnotherWorkerSettlesAChargeOfTheKey) {
  Worker one(Worker::settings_for(server_), Worker::quick(), &refunds_);
  Worker two(Worker::settings_for(server_), Worker::quick(), &refunds_);
  ASSERT_TRUE(one.turn_until_up() && two.turn_until_up());
  reset_command_counts(server_);
  const std::vector<Charge> dear{{bill_[0].key, &day_, 2}};
  const auto charged = one.charge(dear);
  EXPECT_FALSE(two.charge(bill_).outcomes[0].allowed);
  ASSERT_TRUE(two.store.refuses(bill_, outcome_));
  one.store.settle(dear[0], charged.now, 1);
  EXPECT_FALSE(two.store.refuses(bill_, outcome_));
  const auto calls = [&] { return server_.info("commandstats", "cmdstat_evalsha"); };
  EXPECT_TRUE(one.turn_until([&] { return calls().starts_with("calls=3,"); }));
  EXPECT_TRUE(two.charge(bill_).outcomes[0].allowed);
}

// A release is not a refund for the cache. If it were one, every request that ends would make the cached
// refusals of a group of keys unusable.
TEST_F(DenyingStore, CachedRefusalsAreKeptWhenPermitsAreReleased) {
  // Declared before the worker, which releases permits of this limiter when it is destroyed.
  const limit::Limiter many = limit::Concurrency::make(9).value();
  Worker worker(Worker::settings_for(server_), Worker::quick(), &refunds_);
  ASSERT_TRUE(worker.turn_until_up());
  // This key is in the same group as the key of bill_. A refund of one key makes cached refusals of the whole
  // group unusable.
  const std::vector<Charge> held{{{.lo = 8, .hi = bill_[0].key.hi}, &many}};
  EXPECT_TRUE(worker.charge(held).outcomes[0].allowed);
  for (int i = 0; i < 3; ++i) worker.charge(bill_);
  ASSERT_TRUE(worker.store.refuses(bill_, outcome_));
  worker.store.release(held[0]);
  EXPECT_TRUE(worker.store.refuses(bill_, outcome_));
}

// weir sends a request to Redis before Redis has made a refund. The answer may then describe the state before
// the refund.
TEST_F(DenyingStore, RefusalThatRedisMayHaveMadeBeforeARefundIsNotCached) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const auto charged = worker.charge(bill_);
  worker.charge(bill_);
  Answer refused;
  worker.begin(bill_, refused);
  worker.store.refund(bill_[0], charged.now);
  ASSERT_TRUE(worker.turn_until([&] { return refused.done; }));
  EXPECT_FALSE(worker.store.refuses(bill_, outcome_));
}

TEST_F(DenyingStore, AllCachedRefusalsAreDroppedWhenTheConnectionIsLost) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  for (int i = 0; i < 3; ++i) worker.charge(bill_);
  ASSERT_TRUE(worker.store.refuses(bill_, outcome_));
  server_.kill();
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.state() != StoreState::Up; }));
  EXPECT_FALSE(worker.store.refuses(bill_, outcome_));
  server_.start();  // Redis loses its state soon after it has refused the request
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.store.refuses(bill_, outcome_));
  EXPECT_TRUE(worker.charge(bill_).outcomes[0].allowed);
}

}  // namespace
}  // namespace weir::redis
