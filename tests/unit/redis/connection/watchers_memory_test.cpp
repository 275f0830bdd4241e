// Makes memory run out briefly in the coroutines that watch Redis: one reads a cluster's slot map, the other
// listens to a Sentinel. Both must continue.
#include "redis/connection/sentinels.hpp"
#include "unit/redis/cluster/two_masters.hpp"
#include "unit/redis/store/store_fixture.hpp"
#include "unit/scarce_memory.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

// Where an allocation failed: nowhere, before the watching coroutine was started, or in that coroutine.
enum class Failed { Nothing, Start, Watcher };

// Runs the next handler of the event loop, which starts a watching coroutine. Makes the handler's n-th
// allocation fail. Allocations count from 0. Returns Nothing if the handler makes too few allocations, and
// Start if it could not start the coroutine.
Failed fails_once(long n, net::asio::io_context& loop) {
  tests::allocations_left = n;
  tests::only_one_fails = true;
  auto failed = Failed::Watcher;
  try {
    loop.run_one();
  } catch (const std::bad_alloc&) {
    failed = Failed::Start;
  }
  tests::only_one_fails = false;
  return std::exchange(tests::allocations_left, -1) < 0 ? failed : Failed::Nothing;
}

TEST(WatchersMemory, ClusterSlotsAreReadAgainAfterALackOfMemory) {
  TwoMasters cluster;
  int survived = 0;
  for (long n = 0;; ++n) {
    Worker worker(cluster.settings(1s));
    const auto failed = fails_once(n, worker.loop);
    if (failed == Failed::Nothing) break;
    if (failed == Failed::Start) continue;
    ASSERT_TRUE(worker.turn_until_up()) << "after " << n;
    // Each of the two masters has a session, which logs that it is up. Nothing else is logged.
    ASSERT_EQ(worker.log.size(), 2U) << worker.log.front();
    ++survived;
  }
  EXPECT_GE(survived, 5) << "allocations: the address and the command";
}

TEST(WatchersMemory, WeirListensToTheNextSentinelAfterALackOfMemory) {
  SentinelSettings settings;
  settings.addresses = {{"127.0.0.1", free_port(), ""}};
  settings.master = "mine";
  int survived = 0;
  for (long n = 0;; ++n) {
    net::asio::io_context loop{1};
    const auto sentinels = std::make_shared<Sentinels>(loop.get_executor(), settings, 1s);
    bool ended = false;
    net::asio::post(loop,
                    [&] { sentinels->follow([] {}, [&](const std::exception_ptr&) { ended = true; }); });
    const auto failed = fails_once(n, loop);
    if (failed == Failed::Nothing) break;
    if (failed == Failed::Start) continue;
    loop.run_for(5ms);
    EXPECT_FALSE(ended) << "after " << n;
    sentinels->stop();
    loop.restart();
    loop.run_for(1s);
    ++survived;
  }
  EXPECT_GE(survived, 2);
}

}  // namespace
}  // namespace weir::redis
