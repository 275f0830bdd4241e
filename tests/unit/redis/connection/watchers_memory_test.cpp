// Makes memory run out briefly in two kinds of coroutines: those that read a cluster's map of slots, and
// those that listen to a Sentinel. The coroutines must continue.
#include "redis/connection/sentinels.hpp"
#include "unit/redis/cluster/two_masters.hpp"
#include "unit/redis/store/store_fixture.hpp"
#include "unit/scarce_memory.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

// Runs the loop's next handler and makes its n-th allocation fail. Returns false if weir's code made fewer
// than n allocations. Allocations inside Asio do not fail, because the process would end.
bool fails_once(long n, net::asio::io_context& loop) {
  tests::allocations_left = n;
  tests::only_one_fails = true;
  bool ours = true;
  try {
    loop.run_one();
  } catch (const std::bad_alloc&) {
    ours = false;
  }
  tests::only_one_fails = false;
  return std::exchange(tests::allocations_left, -1) < 0 && ours;
}

TEST(WatchersMemory, SlotMapIsReadAgainAfterALackOfMemory) {
  TwoMasters cluster;
  long n = 0;
  for (bool failed = true; failed; ++n) {
    Worker worker(cluster.settings(1s));
    failed = fails_once(n, worker.loop);
    if (!failed) continue;
    ASSERT_TRUE(worker.turn_until_up()) << "after " << n;
    // The log must have one line for each of the two sessions that are up.
    ASSERT_EQ(worker.log.size(), 2U) << worker.log.front();
  }
  EXPECT_GE(n, 5) << "allocations: the address and the command";
}

TEST(WatchersMemory, WeirListensToTheNextSentinelAfterALackOfMemory) {
  SentinelSettings settings;
  settings.addresses = {{"127.0.0.1", free_port(), ""}};
  settings.master = "mine";
  long n = 0;
  for (bool failed = true; failed; ++n) {
    net::asio::io_context loop{1};
    const auto sentinels = std::make_shared<Sentinels>(loop.get_executor(), settings, 1s);
    bool ended = false;
    sentinels->follow([] {}, [&](const std::exception_ptr&) { ended = true; });
    failed = fails_once(n, loop);
    loop.run_for(5ms);
    EXPECT_FALSE(ended) << "after " << n;
    sentinels->stop();
    loop.restart();
    loop.run_for(1s);
  }
  EXPECT_GE(n, 2);
}

}  // namespace
}  // namespace weir::redis
