// Tests stores that prefetch units, on a real Redis.
#include "unit/redis/store/store_fixture.hpp"

#include "weir/redis/shared_grants.hpp"

#include <array>

namespace weir::redis {
namespace {

class PrefetchingStore : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBurst = 10'000;

  Server server_;
  SharedGrants units_{64, 10s};
  const limit::Limiter bucket_ = token_bucket({1, 24h}, kBurst);
  const limit::Limiter window_ =
      limit::FixedWindow::make({kBurst, std::chrono::hours(24 * 365 * 30)}).value();

  std::vector<limit::Charge> bill(const limit::Limiter& limiter, limit::Cost lease = 1000) const {
    return {{.key = {7, 9}, .limiter = &limiter, .lease = lease}};
  }
  std::uint64_t calls() const {
    const auto evalsha_stats = server_.info("commandstats", "cmdstat_evalsha");
    return evalsha_stats.empty() ? 0 : std::stoull(evalsha_stats.substr(evalsha_stats.find("calls=") + 6));
  }
  // Waits until Redis has answered all commands, including those that prefetch units.
  void await_answers(Worker& worker) {
    ASSERT_FALSE(worker.charge({{.key = {1, 1}, .limiter = &bucket_}}).error);
  }
  // Returns how many units Redis would still admit for a weir without prefetched units.
  limit::Cost left(const limit::Limiter& limiter) {
    Worker other(Worker::settings_for(server_));
    EXPECT_TRUE(other.turn_until_up());
    return other.charge(bill(limiter, 0)).outcomes.at(0).remaining + 1;
  }
};

TEST_F(PrefetchingStore, RedisIsRarelyCalledForABusyKeyAndUnusedUnitsAreReturnedWhenTheStoreEnds) {
  for (const auto* limiter : {&bucket_, &window_}) {
    server_.ask({"FLUSHALL"});
    {
      Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units_);
      ASSERT_TRUE(worker.turn_until_up());
      const auto before = calls();
      for (int i = 0; i < 2000; ++i) ASSERT_TRUE(worker.charge(bill(*limiter)).outcomes[0].allowed);
      EXPECT_LT(calls() - before, 40U);
      await_answers(worker);
      EXPECT_GT(units_.stats().held(), 0U);
    }
    EXPECT_EQ(units_.stats().held(), 0U);
    const auto rest = left(*limiter);
    EXPECT_LE(rest, kBurst - 2000);
    // One unit may be missing: the first time slot of a full bucket begins immediately, so it has expired.
    EXPECT_GE(rest, kBurst - 2000 - (limiter == &bucket_ ? 1 : 0));
  }
}

TEST_F(PrefetchingStore, CheckIsDecidedByPrefetchedUnitsAndSpendsNone) {
  const limit::Limiter eleven = limit::FixedWindow::make({11, std::chrono::hours(24 * 365 * 30)}).value();
  Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units_);
  ASSERT_TRUE(worker.turn_until_up());
  auto check = bill(eleven, 8);
  check[0].cost = 0;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(worker.charge(check).outcomes[0].remaining, 11U);
  EXPECT_EQ(units_.stats().held(), 0U) << "checks do not make a key busy";
  ASSERT_TRUE(worker.charge(bill(eleven, 0)).outcomes[0].allowed);
  EXPECT_EQ(worker.charge(check).outcomes[0].remaining, 10U);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.charge(bill(eleven, 8)).outcomes[0].allowed) << i;
  EXPECT_FALSE(worker.charge(check).outcomes[0].allowed);
}

// Redis has debited all units of the key. This process still has some of them.
TEST_F(PrefetchingStore, CheckIsAdmittedWhileAPrefetchedUnitIsLeft) {
  Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units_);
  ASSERT_TRUE(worker.turn_until_up());
  while (units_.stats().held() == 0) {
    ASSERT_TRUE(worker.charge(bill(window_)).outcomes[0].allowed);
    await_answers(worker);
  }
  auto rest = bill(window_, 0), check = bill(window_);
  check[0].cost = 0;
  rest[0].cost = left(window_) - 1;
  ASSERT_TRUE(worker.charge(rest).outcomes[0].allowed);
  const auto held = units_.stats().held();
  EXPECT_TRUE(worker.charge(check).outcomes[0].allowed);
  EXPECT_EQ(units_.stats().held(), held);
}

TEST_F(PrefetchingStore, UnitsArePrefetchedInTheSameCallAsTheRequestsOfTheEventLoopIteration) {
  const std::vector<limit::Charge> other{{.key = {1, 1}, .limiter = &window_}};
  for (const bool other_first : {false, true}) {
    server_.ask({"FLUSHALL"});
    SharedGrants units(64, 10s);
    Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units);
    ASSERT_TRUE(worker.turn_until_up());
    const auto hot = bill(window_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.charge(hot).outcomes[0].allowed);
    const auto before = calls();
    std::array<Answer, 2> answers;
    worker.begin(other_first ? other : hot, answers[0]);
    worker.begin(other_first ? hot : other, answers[1]);
    const auto over = [&] { return answers[0].done && answers[1].done && units.stats().held() == 8; };
    ASSERT_TRUE(worker.turn_until(over));
    EXPECT_EQ(calls() - before, 1U);
  }
}

// Other instances have spent all but eight units since the last reply to this instance. Now this instance
// wants a grant of eight units.
TEST_F(PrefetchingStore, RequestIsChargedBeforeUnitsArePrefetched) {
  SharedGrants units(64, 10s);
  Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units);
  ASSERT_TRUE(worker.turn_until_up());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.charge(bill(window_)).outcomes[0].allowed);
  {
    Worker other(Worker::settings_for(server_));
    ASSERT_TRUE(other.turn_until_up());
    auto rest = bill(window_, 0);
    rest[0].cost = kBurst - 3 - 8;
    ASSERT_TRUE(other.charge(rest).outcomes[0].allowed);
  }
  EXPECT_TRUE(worker.charge(bill(window_)).outcomes[0].allowed);
  await_answers(worker);
  EXPECT_EQ(units.stats().taken, 0U);
}

TEST_F(PrefetchingStore, UnitsPrefetchedByALateReplyAreRefunded) {
  for (const auto* limiter : {&bucket_, &window_}) {
    server_.ask({"FLUSHALL"});
    SharedGrants units(64, 10s);
    Worker worker(Worker::settings_for(server_, 50ms), Worker::quick(), nullptr, &units);
    ASSERT_TRUE(worker.turn_until_up());
    for (unsigned i = 0; i < 3; ++i) ASSERT_TRUE(worker.charge(bill(*limiter)).outcomes[0].allowed);
    server_.freeze();
    EXPECT_EQ(worker.charge(bill(*limiter)).error, StoreError::Timeout);
    ASSERT_TRUE(worker.turn_until([&] { return worker.store.stats().timeouts == 2; }));
    server_.thaw();
    // Two refunds are expected: the refund of the request and the refund of the grant.
    const auto refunded = [&] { return worker.store.stats().refunds == 2; };
    ASSERT_TRUE(worker.turn_until(refunded));
    EXPECT_EQ(worker.charge(bill(*limiter)).outcomes.at(0).remaining, kBurst - 4);
    EXPECT_EQ(units.stats().taken, 0U);
  }
}

// Another instance has been charged for time slots next to those of the late grant. The refund of the grant
// must not change these slots.
TEST_F(PrefetchingStore, UnitsPrefetchedByALateReplyAreRefundedInTheirOwnTimeSlots) {
  SharedGrants units(64, 10s);
  Worker other(Worker::settings_for(server_), Worker::quick(), nullptr, &units);
  Worker worker(Worker::settings_for(server_, 50ms), Worker::quick(), nullptr, &units_);
  ASSERT_TRUE(other.turn_until_up());
  ASSERT_TRUE(worker.turn_until_up());
  auto first = bill(bucket_);
  first[0].cost = 100;
  ASSERT_TRUE(other.charge(first).outcomes[0].allowed);
  server_.freeze();
  EXPECT_EQ(worker.charge(bill(bucket_)).error, StoreError::Timeout);
  Answer behind;
  const auto charges = bill(bucket_);
  other.begin(charges, behind);
  server_.thaw();
  ASSERT_TRUE(other.turn_until([&] { return behind.done; }));
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds == 1; }));
  await_answers(worker);
  const auto filled = worker.charge(charges).outcomes.at(0).slots_begin,
             its = behind.outcomes.at(0).slots_begin;
  const auto slot = limit::gcra_core(bucket_)->ticks(base::TimePoint(24h));
  EXPECT_TRUE(filled + slot == its || its + slot == filled)
      << "the request and the grant are adjacent, in either order";
}

TEST_F(PrefetchingStore, LateRefusalChargesNothing) {
  const limit::Limiter one = limit::FixedWindow::make({1, 1h}).value();
  SharedGrants units(64, 10s);
  Worker worker(Worker::settings_for(server_, 50ms), Worker::quick(), nullptr, &units);
  ASSERT_TRUE(worker.turn_until_up());
  const limit::Charge used_up{.key = {1, 1}, .limiter = &one};
  ASSERT_TRUE(worker.charge({used_up}).outcomes.at(0).allowed);
  auto both = bill(bucket_);
  both.push_back(used_up);
  server_.freeze();
  EXPECT_EQ(worker.charge(both).error, StoreError::Timeout);
  server_.thaw();
  const auto answer = worker.charge(bill(bucket_));
  ASSERT_FALSE(answer.error);
  EXPECT_EQ(answer.outcomes.at(0).remaining, kBurst - 1);
  EXPECT_EQ(units.stats().taken, 0U);
}

TEST_F(PrefetchingStore, RefundOfARequestReturnsItsPrefetchedUnit) {
  for (const auto* limiter : {&bucket_, &window_}) {
    server_.ask({"FLUSHALL"});
    SharedGrants units(64, 10s);
    Worker worker(Worker::settings_for(server_), Worker::quick(), nullptr, &units);
    ASSERT_TRUE(worker.turn_until_up());
    for (int i = 0; i < 100; ++i) {
      const auto charges = bill(*limiter);
      const auto answer = worker.charge(charges);
      worker.store.refund(charges[0], answer.now, answer.outcomes[0]);
    }
    await_answers(worker);
    await_answers(worker);  // the first call may have sent refunds, whose answers this call awaits
    const auto stats = units.stats();
    EXPECT_EQ(stats.lost, 0U);
    const auto all = left(*limiter) + stats.held();
    EXPECT_LE(all, kBurst);
    // Up to two units may be missing, because a time slot that begins at once expires before its refund.
    EXPECT_GE(all, kBurst - (limiter == &bucket_ ? 2 : 0));
  }
}

TEST_F(PrefetchingStore, ChargesPaidWithPrefetchedUnitsRemainIfRedisTimesOut) {
  SharedGrants units(64, 10s);
  Worker worker(Worker::settings_for(server_, 50ms), Worker::quick(), nullptr, &units);
  ASSERT_TRUE(worker.turn_until_up());
  const auto charges = bill(window_);
  for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(worker.charge(charges).outcomes[0].allowed);
  await_answers(worker);
  server_.freeze();
  const auto before = units.stats();
  auto both = charges;
  both.push_back({.key = {1, 1}, .limiter = &bucket_});
  const auto answer = worker.charge(both);
  EXPECT_EQ(answer.error, StoreError::Timeout);
  EXPECT_EQ(answer.unanswered, limit::ChargeSet{0b10});
  EXPECT_TRUE(answer.outcomes[0].allowed);
  EXPECT_EQ(units.stats().spent, before.spent + 1);
  worker.store.refund(charges[0], answer.now, answer.outcomes[0]);
  EXPECT_EQ(units.stats().put_back, before.put_back + 1);
  server_.thaw();
}

TEST_F(PrefetchingStore, NoUnitsArePrefetchedWithoutACacheForThem) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(worker.charge(bill(window_)).outcomes[0].allowed);
  EXPECT_EQ(left(window_), kBurst - 20);
}

}  // namespace
}  // namespace weir::redis
