// Memory runs out at some step while a request joins the queue. The queue must then be unchanged.
#include "unit/proxy/queue/lanes.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/proxy/queue.hpp"

#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
// The tests make only the throwing operator new fail. std::stable_sort calls this operator, and would
// continue with less memory if the operator failed. So no test needs a failure here.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::proxy {
namespace {

using tests::allocations_left;
using tests::fail_each_allocation;

Departure departure(int second) {
  const base::TimePoint at{std::chrono::seconds(second)};
  return {.at = at, .promised = at, .charge = {.key = kLane, .limiter = nullptr}, .shared_max_waiting = 100};
}

TEST(QueueMemory, RequestThatFindsNoMemoryIsNotLeftInTheQueue) {
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
  EXPECT_GE(made, 3) << "allocations: a lane, a client, a departure";
  const int again = fail_each_allocation([&] { queue.join(second, departure(2)); },
                                         [&] {
                                           EXPECT_FALSE(second.waits());
                                           EXPECT_EQ(queue.size(), 1U);
                                           EXPECT_EQ(queue.waiting(kLane, second.client()), 0U);
                                           EXPECT_EQ(queue.surplus(kLane), nullptr);
                                         });
  EXPECT_GE(again, 1) << "allocation: a client in an existing lane";
  allocations_left = 0;  // all further steps must work without memory
  EXPECT_EQ(queue.take_due(0, departure(1).at), &first);
  queue.leave(second);
  queue.drop_surplus(kLane);
  allocations_left = -1;
  EXPECT_EQ(queue.size(), 0U);
}

TEST(QueueMemory, OfferedDepartureThatFindsNoMemoryIsNotLeftInTheQueue) {
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
