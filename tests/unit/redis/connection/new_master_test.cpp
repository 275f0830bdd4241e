// Tests a master that has no slots at first, on a real Redis Cluster. When the first slot moves to this
// master, weir must connect to it.
#include "redis/scripts/bill.hpp"
#include "unit/redis/cluster/two_masters.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include "weir/limit/slot_hash.hpp"

#include <chrono>

namespace weir::redis {
namespace {

constexpr limit::Cost kWindowLimit = 10'000;

TEST(NewMaster, SettlementsWaitWhileTheStoreConnectsToTheNewMaster) {
  TwoMasters cluster(kSlots);
  Worker worker(cluster.settings(1s));
  ASSERT_TRUE(worker.turn_until_up());
  const limit::Limiter window =
      limit::FixedWindow::make({kWindowLimit, std::chrono::hours(24 * 365 * 30)}).value();
  const limit::Charge line{TwoMasters::key_at(1, 1), &window};
  const auto charged = worker.charge({line});
  ASSERT_FALSE(charged.error) << worker.store.last_error();
  cluster.give(slot_of(limit::slot_hash_of(line.key)));

  const auto settle = [&] { worker.store.settle(line, charged.now, line.cost + 1); };
  cluster[1].freeze();
  settle();  // the former owner of the slot redirects this settlement
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.state() != StoreState::Up; }));
  for (int i = 0; i < 5; ++i) settle();
  cluster[1].thaw();
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge({line}).outcomes.at(0).remaining, kWindowLimit - (1 + 6) - 1);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U);
}

}  // namespace
}  // namespace weir::redis
