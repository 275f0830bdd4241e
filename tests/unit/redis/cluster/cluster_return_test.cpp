// Tests how a weir process ends, on a real Redis Cluster. The process must refund all prefetched units,
// release all permits and wait for the replies, with few calls.
#include "redis/scripts/bill.hpp"
#include "unit/redis/cluster/two_masters.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include "weir/limit/slot_hash.hpp"
#include "weir/redis/shared_grants.hpp"

#include <memory>
#include <string>
#include <vector>

namespace weir::redis {
namespace {

constexpr limit::Cost kLimit = 10'000;

class ClusterRefunds : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    // Starts the cluster here and not in SetUpTestSuite(): after a failure there, gtest would count the tests
    // as skipped.
    if (!cluster_) cluster_ = std::make_unique<TwoMasters>();
    cluster_->empty();
  }

  std::unique_ptr<Worker> weir(const StoreTuning& tuning = Worker::quick()) {
    auto worker = std::make_unique<Worker>(cluster_->settings(1s), tuning, nullptr, &units_);
    EXPECT_TRUE(worker->turn_until_up());
    return worker;
  }
  limit::Charge line(const limit::Key& key) const { return {.key = key, .limiter = &window_, .lease = 1000}; }

  // Returns `count` keys on the first node, all in one slot or each in its own slot.
  static std::vector<limit::Key> keys(std::size_t count, bool one_slot) {
    const auto place = limit::slot_hash_of(TwoMasters::key_at(0, 1));
    std::vector<limit::Key> keys;
    for (std::size_t n = 0; n < count; ++n) {
      const auto key = TwoMasters::key_at(0, 10 + n);
      keys.push_back(one_slot ? limit::with_slot_hash(key, place) : key);
    }
    return keys;
  }
  static constexpr unsigned kAsked = 4;  // requests for each key; a key is hot after GrantCache::kHot = 4
  void heat(Worker& worker, const std::vector<limit::Key>& keys) {
    for (unsigned i = 0; i < kAsked; ++i)
      for (const auto& key : keys) ASSERT_TRUE(worker.charge({line(key)}).outcomes[0].allowed);
    ASSERT_TRUE(worker.turn_until([&] { return units_.stats().held() == 8 * keys.size(); }));
  }
  // Returns the number of keys whose count in Redis is exactly the number of requests made.
  std::size_t settled(const std::vector<limit::Key>& keys) {
    Worker other(cluster_->settings(1s));
    EXPECT_TRUE(other.turn_until_up());
    std::size_t settled = 0;
    for (const auto& key : keys) {
      auto plain = line(key);
      plain.lease = 0;
      settled += other.charge({plain}).outcomes.at(0).remaining == kLimit - kAsked - 1 ? 1 : 0;
    }
    return settled;
  }
  static std::uint64_t calls() {
    const auto evalsha_stats = (*cluster_)[0].info("commandstats", "cmdstat_evalsha");
    return evalsha_stats.empty() ? 0 : std::stoull(evalsha_stats.substr(evalsha_stats.find("calls=") + 6));
  }

  static std::unique_ptr<TwoMasters> cluster_;
  // Keys become hot if there are many requests for them within a quarter of the hold time. The hold time is
  // long, so that this happens even on a slow machine.
  SharedGrants units_{8192, 1min};
  const limit::Limiter window_ =
      limit::FixedWindow::make({kLimit, std::chrono::hours(24 * 365 * 30)}).value();
};
std::unique_ptr<TwoMasters> ClusterRefunds::cluster_;

// The worker must wait for all replies before it ends. If weir closed the connection earlier, Redis would
// drop the commands that it has not yet handled.
TEST_F(ClusterRefunds, PrefetchedUnitsOfManyKeysAreReturnedBeforeAWorkerEnds) {
  const auto many = keys(1500, false);
  auto worker = weir();
  heat(*worker, many);
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.finish(); }));
  EXPECT_EQ(worker->store.stats().refunds, many.size());
  worker.reset();
  EXPECT_EQ(settled(many), many.size());
  EXPECT_EQ(units_.stats().held(), 0U);
}

TEST_F(ClusterRefunds, UnitsOfKeysInOneClusterSlotAreReturnedInFewCalls) {
  const auto many = keys(300, true);
  auto worker = weir();
  heat(*worker, many);
  const auto before = calls();
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.finish(); }));
  EXPECT_EQ(calls() - before, 2U);
  worker.reset();
  EXPECT_EQ(settled(many), many.size());
}

// One renewal has more commands than weir may send at once.
TEST_F(ClusterRefunds, PermitsInManyClusterSlotsAreRenewedAndReleased) {
  const auto many = keys(300, false);
  const limit::Limiter one = limit::Concurrency::make(1).value();
  auto tuning = Worker::quick();
  tuning.max_pending = 64;
  auto settings = cluster_->settings(1s);
  settings.lease_time = 300ms;
  Worker worker(settings, tuning);
  ASSERT_TRUE(worker.turn_until_up());
  for (const auto& key : many) ASSERT_TRUE(worker.charge({{key, &one}}).outcomes[0].allowed);
  const auto& stats = worker.store.stats();
  ASSERT_TRUE(
      worker.turn_until([&, then = stats.refunds + 6 * many.size()] { return stats.refunds >= then; }));
  for (const auto& key : many) EXPECT_FALSE(worker.charge({{key, &one}}).outcomes[0].allowed);
  for (const auto& key : many) worker.store.release({key, &one});
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.finish(); }));
  for (const auto& key : many) EXPECT_TRUE(worker.charge({{key, &one}}).outcomes[0].allowed);
  EXPECT_EQ(stats.refunds_lost, 0U);
}

TEST_F(ClusterRefunds, UnitsOfKeysInAMovingSlotAreReturnedToTheNodeThatHasEachKey) {
  const auto many = keys(20, true);
  auto worker = weir();
  heat(*worker, many);
  const auto slot = slot_of(limit::slot_hash_of(many[0]));
  cluster_->begin_move(slot, 7);
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.finish(); }));
  worker.reset();
  EXPECT_EQ(settled(many), many.size());
  cluster_->give_up_move(slot);
}

TEST_F(ClusterRefunds, EndingStoreWaitsForAnUnresponsiveNodeOnlyUntilTheFinishTimeout) {
  auto tuning = Worker::quick();
  tuning.finish_timeout = 150ms;
  auto worker = weir(tuning);
  heat(*worker, keys(3, false));
  (*cluster_)[0].freeze();
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.finish(); }));
  const auto took = std::chrono::steady_clock::now() - began;
  (*cluster_)[0].thaw();
  EXPECT_GE(took, 150ms);
  EXPECT_LT(took, 2s);
}

TEST_F(ClusterRefunds, OnlyTheLastWorkerToEndReturnsPrefetchedUnits) {
  const auto few = keys(3, false);
  auto first = weir();
  auto last = weir();
  heat(*first, few);
  ASSERT_TRUE(first->turn_until([&] { return first->store.finish(); }));
  first.reset();
  EXPECT_EQ(units_.stats().held(), 8 * few.size()) << "the other worker may spend the units";
  ASSERT_TRUE(last->turn_until([&] { return last->store.finish(); }));
  last.reset();
  EXPECT_EQ(settled(few), few.size());
}

}  // namespace
}  // namespace weir::redis
