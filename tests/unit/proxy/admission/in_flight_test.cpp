#include "weir/proxy/in_flight.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST(InFlight, EachLowerPriorityHasABoundFivePercentLower) {
  const InFlight in_flight(200);
  std::vector<std::uint64_t> bounds;
  for (policy::Priority priority = 0; priority < policy::kPriorities; ++priority)
    bounds.push_back(in_flight.bound(priority));
  EXPECT_EQ(bounds, (std::vector<std::uint64_t>{200, 190, 180, 170, 160, 150, 140, 130, 120, 110}));
}

TEST(InFlight, LowestPriorityIsRejectedFirst) {
  InFlight in_flight(20);
  int entered = 0;
  while (in_flight.enter(9)) ++entered;
  EXPECT_EQ(entered, 11);
  EXPECT_TRUE(in_flight.enter(5));
  EXPECT_FALSE(in_flight.enter(9));
  while (in_flight.enter(5)) continue;
  EXPECT_EQ(in_flight.count(), 15U);
  while (in_flight.enter(0)) continue;
  EXPECT_EQ(in_flight.count(), 20U);
  for (int i = 0; i < 10; ++i) in_flight.leave();
  EXPECT_TRUE(in_flight.enter(9));
  EXPECT_FALSE(in_flight.enter(9));
}

TEST(InFlight, FloodOfRejectedLowPriorityRequestsTakesNoPlaceOfHigherPriorities) {
  InFlight in_flight(20);
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(in_flight.enter(0));
  std::atomic<bool> over = false;
  std::thread low([&] {
    while (!over)
      for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(in_flight.enter(9));
  });
  int shed = 0;
  for (int i = 0; i < 2'000'000; ++i)
    if (in_flight.enter(0))
      in_flight.leave();
    else
      ++shed;
  over = true;
  low.join();
  EXPECT_EQ(shed, 0) << "one place was free all the time";
  EXPECT_EQ(in_flight.count(), 19U);
}

TEST(InFlight, SmallBoundStillAdmitsTheLowestPriority) {
  InFlight in_flight(1);
  EXPECT_TRUE(in_flight.enter(9));
  EXPECT_FALSE(in_flight.enter(0));
}

TEST(InFlight, RequestThatComesFromAQueueIsAdmittedEvenAboveTheBound) {
  InFlight in_flight(1);
  EXPECT_TRUE(in_flight.enter(0));
  in_flight.enter_again();
  EXPECT_EQ(in_flight.count(), 2U);
  EXPECT_FALSE(in_flight.enter(0));
}

TEST(InFlight, NoRequestIsRejectedIfThereIsNoBound) {
  InFlight in_flight(0);
  EXPECT_FALSE(in_flight.bounded());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(in_flight.enter(9));
  EXPECT_EQ(in_flight.fullness(), 0);
}

TEST(InFlight, RequestsAlreadyInFlightCountTowardsAChangedBound) {
  InFlight in_flight(3);
  ASSERT_TRUE(in_flight.enter(0));
  ASSERT_TRUE(in_flight.enter(0));
  in_flight.set_most(2);
  EXPECT_FALSE(in_flight.enter(0));
  in_flight.set_most(0);
  in_flight.leave();
  in_flight.set_most(2);
  EXPECT_TRUE(in_flight.enter(0));
  EXPECT_FALSE(in_flight.enter(0));
}

}  // namespace
}  // namespace weir::proxy
