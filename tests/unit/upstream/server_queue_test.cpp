// Tests the order in which requests that wait for a server are woken.
#include "weir/upstream/server_queue.hpp"

#include "weir/upstream/server_group.hpp"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

struct ServerQueueTest : testing::Test {
  std::unique_ptr<ServerQueue::Waiter> join(const std::string& name, policy::Priority priority = 5,
                                            bool needs_another_server = false, std::size_t most = 100) {
    return queue.join(most, priority, needs_another_server, [this, name] { woken += name; });
  }
  std::string take_woken() { return std::exchange(woken, {}); }

  std::string woken;
  ServerQueue queue;
};

TEST_F(ServerQueueTest, WaitingRequestsAreWokenOneAfterTheOther) {
  queue.freed();
  auto a = join("a");
  auto b = join("b");
  EXPECT_TRUE(a->is_next());
  EXPECT_FALSE(b->is_next());
  queue.freed();
  queue.freed();
  EXPECT_EQ(take_woken(), "aa");
  a.reset();
  EXPECT_EQ(take_woken(), "b");
  EXPECT_TRUE(b->is_next());
  b.reset();
  queue.freed();
  EXPECT_EQ(take_woken(), "");
}

TEST_F(ServerQueueTest, RequestsAreWokenByPriorityAndAtEqualPriorityByArrival) {
  std::vector<std::pair<std::string, std::unique_ptr<ServerQueue::Waiter>>> waiters;
  for (const auto& [name, priority] : {std::pair("c", 5), {"e", 9}, {"d", 5}, {"a", 0}, {"b", 4}})
    waiters.emplace_back(name, join(name, static_cast<policy::Priority>(priority)));
  std::string order;
  while (!waiters.empty()) {
    queue.freed();
    const auto next = take_woken();
    order += next;
    std::erase_if(waiters, [&](const auto& waiter) { return waiter.first == next; });
    take_woken();
  }
  EXPECT_EQ(order, "abcde");
}

TEST_F(ServerQueueTest, RequestThatCannotUseTheFreeServerWakesTheNextRequestAtOnce) {
  const auto a = join("a", 5, true);
  EXPECT_FALSE(queue.is_awaited());
  const auto b = join("b");
  const auto c = join("c");
  EXPECT_TRUE(queue.is_awaited());
  EXPECT_TRUE(a->is_next() && b->is_next());
  EXPECT_FALSE(c->is_next());
  queue.freed();
  EXPECT_EQ(take_woken(), "a");
  a->pass_on();
  EXPECT_EQ(take_woken(), "b");
  c->pass_on();
  EXPECT_EQ(take_woken(), "");
}

TEST_F(ServerQueueTest, RequestThatMayUseOnlySomeServersWaitsBehindEarlierRequests) {
  const auto a = join("a");
  const auto b = join("b", 5, true);
  EXPECT_FALSE(b->is_next());
}

TEST_F(ServerQueueTest, NumberOfWaitingRequestsIsBounded) {
  auto a = join("a", 5, false, 2);
  const auto b = join("b", 5, true, 2);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(join("c", 0, false, 2), nullptr);
  EXPECT_EQ(join("c", 0, false, 0), nullptr);
  a.reset();
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_FALSE(queue.is_awaited());
  EXPECT_NE(join("c", 0, false, 2), nullptr);
}

TEST_F(ServerQueueTest, NextRequestIsWokenIfAWokenRequestLeavesTheQueue) {
  auto a = join("a");
  const auto b = join("b");
  queue.freed();  // wakes `a`, which then leaves the queue, as if its deadline had passed
  a.reset();
  EXPECT_EQ(take_woken(), "ab");
}

// Each request waits without a bound, so a single lost wake-up would make the test hang.
TEST(ServerQueueThreads, EveryWaitingRequestIsWokenEventually) {
  UpstreamSettings settings;
  settings.servers.emplace_back().max_in_flight = 2;
  ServerGroup server_group(settings, {{.name = "a", .addresses = Addresses(1)}});
  auto& member = server_group.member(0);
  constexpr int kWaitingThreads = 4;
  constexpr int kTimes = 5'000;
  std::atomic<int> inside{0};
  std::atomic<bool> exceeded{false};
  const auto work = [&] {
    struct Door {
      std::mutex mutex;
      std::condition_variable changed;
      bool open = false;
    } door;
    for (int i = 0; i < kTimes; ++i) {
      if (server_group.queue().is_awaited() || member.enter({})) {
        const auto waiter = server_group.queue().join(kWaitingThreads, 5, false, [&] {
          const std::scoped_lock lock(door.mutex);
          door.open = true;
          door.changed.notify_one();
        });
        while (!waiter->is_next() || member.enter({})) {
          std::unique_lock lock(door.mutex);
          door.changed.wait(lock, [&] { return door.open; });
          door.open = false;
        }
      }
      if (++inside > 2) exceeded = true;
      if (i % 16 == 0) std::this_thread::yield();
      --inside;
      member.leave();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kWaitingThreads; ++i) threads.emplace_back(work);
  }
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(server_group.queue().size(), 0u);
}

}  // namespace
}  // namespace weir::upstream
