// Memory that runs out at any step of joining a queue leaves the queue as it was.
#include "weir/proxy/queue.hpp"

#include <cstdlib>
#include <new>
#include <optional>

#include <gtest/gtest.h>

namespace {
thread_local long allocations_left = -1;  // below zero: as many as anybody wants
}

void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::proxy {
namespace {

constexpr limit::Key kLane{7, 7};

Departure departure(int second) {
  const base::TimePoint at{std::chrono::seconds(second)};
  return {.at = at, .promised = at, .charge = {.key = kLane, .limiter = nullptr}, .shared_places = 100};
}

// Fails its n-th allocation, for every n that it makes; how many it made.
template <class Step, class Check>
int fail_each_allocation(Step step, Check unchanged) {
  for (int n = 0;; ++n) {
    allocations_left = n;
    bool failed = false;
    try {
      step();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_left = -1;
    if (!failed) return n;
    unchanged();
    if (::testing::Test::HasFailure()) return n;
  }
}

TEST(QueueMemory, WhoCannotJoinIsNotThere) {
  Queue queue(1);
  Queue::Ticket first(0, {1, 0}, 5), second(0, {2, 0}, 5);
  const int made = fail_each_allocation([&] { queue.join(first, departure(1)); },
                                        [&] {
                                          EXPECT_FALSE(first.waits());
                                          EXPECT_EQ(queue.size(), 0U);
                                          EXPECT_EQ(queue.next_due(0), base::TimePoint::max());
                                          EXPECT_EQ(queue.fullness(), 0);
                                          EXPECT_EQ(queue.surplus(kLane), nullptr);
                                        });
  EXPECT_GE(made, 3) << "a lane, a client in it, a departure";
  const int again = fail_each_allocation([&] { queue.join(second, departure(2)); },
                                         [&] {
                                           EXPECT_FALSE(second.waits());
                                           EXPECT_EQ(queue.size(), 1U);
                                           EXPECT_EQ(queue.waiting(kLane, second.client()), 0U);
                                           EXPECT_EQ(queue.surplus(kLane), nullptr);
                                         });
  EXPECT_GE(again, 1) << "a client in the lane that there is";
  allocations_left = 0;  // nothing else asks for any
  EXPECT_EQ(queue.take_due(0, departure(1).at), &first);
  queue.leave(second);
  queue.drop_surplus(kLane);
  allocations_left = -1;
  EXPECT_EQ(queue.size(), 0U);
}

TEST(QueueMemory, AnOfferThatFailsLeavesNoLane) {
  Queue queue(1);
  const int made = fail_each_allocation([&] { queue.offer(departure(1), 0); },
                                        [&] { EXPECT_EQ(queue.next_due(0), base::TimePoint::max()); });
  EXPECT_GE(made, 2);
  EXPECT_EQ(queue.next_due(0), departure(1).at);
  EXPECT_EQ(queue.take_due(0, departure(1).at), nullptr);
  EXPECT_EQ(queue.next_due(0), base::TimePoint::max());
}

}  // namespace
}  // namespace weir::proxy
