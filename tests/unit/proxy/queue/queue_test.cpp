// Tests in which order the requests of a lane (the queue of one key) depart. Also tests how full all lanes
// are together, and how many requests of a client wait. Each test is one case; queue_laws_test.cpp tests
// random traffic.
#include "weir/proxy/queue.hpp"

#include "unit/proxy/queue/lanes.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::seconds;

class QueueTest : public ::testing::Test {
 protected:
  ~QueueTest() override {
    for (auto& ticket : tickets)
      if (ticket->waits()) queue.leave(*ticket);
  }

  [[nodiscard]] static Departure departure(int second, const limit::Key& lane = kLane) {
    return {.at = at(second), .promised = at(second), .charge = {.key = lane, .limiter = nullptr}};
  }
  struct Named : Queue::Ticket {
    Named(Queue::Worker worker, char a_name, policy::Priority priority, base::TimePoint not_before)
        : Queue::Ticket(worker, {static_cast<std::uint64_t>(a_name), 0}, priority, not_before),
          name(a_name) {}
    char name;  // the ticket's client
  };
  Named& join(char client, int second, policy::Priority priority = 5, Queue::Worker worker = 0,
              const limit::Key& lane = kLane, base::TimePoint not_before = {}) {
    tickets.push_back(std::make_unique<Named>(worker, client, priority, not_before));
    queue.join(*tickets.back(), departure(second, lane));
    return *tickets.back();
  }
  // Returns the clients whose requests depart by `second` if no worker is late.
  std::string depart(int second) {
    std::string names;
    for (bool any = true; any;) {
      any = false;
      for (Queue::Worker worker = 0; worker < 2; ++worker)
        while (const auto* ticket = queue.take_due(worker, at(second))) names += name_of(ticket), any = true;
    }
    return names;
  }
  char name_of(const Queue::Ticket* ticket) const {
    for (const auto& named : tickets)
      if (named.get() == ticket) return named->name;
    return '?';
  }
  std::string depart_all() { return depart(1'000'000); }

  std::vector<std::unique_ptr<Named>> tickets;
  Queue queue{2};
};

TEST_F(QueueTest, FullnessIsThatOfTheFullestLaneThatClientsShare) {
  EXPECT_EQ(queue.fullness(), 0);
  join('a', 1);
  join('a', 2);
  EXPECT_EQ(queue.fullness(), 0) << "the lane belongs to one client";
  const auto shared = [&](int second, const limit::Key& lane, std::uint64_t places) -> Named& {
    auto made = departure(second, lane);
    made.shared_max_waiting = places;
    tickets.push_back(std::make_unique<Named>(0, 'b', policy::kDefaultPriority, base::TimePoint{}));
    queue.join(*tickets.back(), made);
    return *tickets.back();
  };
  shared(1, {3, 3}, 4);
  EXPECT_EQ(queue.fullness(), 0.25);
  auto& leaving = shared(2, kOtherLane, 2);
  EXPECT_EQ(queue.fullness(), 0.5);
  queue.leave(leaving);
  EXPECT_EQ(queue.fullness(), 0.25);
  depart_all();
  EXPECT_EQ(queue.fullness(), 0);
}

TEST_F(QueueTest, FullnessIsMeasuredInCostsInsteadOfRequests) {
  auto made = departure(1);
  made.shared_max_waiting = 8;
  made.charge.cost = 6;
  tickets.push_back(std::make_unique<Named>(0, 'a', policy::kDefaultPriority, base::TimePoint{}));
  queue.join(*tickets.back(), made);
  EXPECT_EQ(queue.fullness(), 0.75);
  made = departure(2);
  made.shared_max_waiting = 8;
  made.charge.cost = 6;
  tickets.push_back(std::make_unique<Named>(0, 'a', policy::kDefaultPriority, base::TimePoint{}));
  queue.join(*tickets.back(), made);
  EXPECT_EQ(queue.fullness(), 1) << "no lane is fuller";
  EXPECT_EQ(depart_all(), "aa");
  EXPECT_EQ(queue.fullness(), 0);
}

TEST_F(QueueTest, RequestDepartsExactlyWhenDue) {
  join('a', 3);
  EXPECT_EQ(queue.next_due(0), at(3));
  EXPECT_EQ(queue.take_due(0, at(3) - base::Duration(1)), nullptr);
  auto* const ticket = queue.take_due(0, at(3));
  ASSERT_NE(ticket, nullptr);
  EXPECT_EQ(ticket->departure().at, at(3));
  EXPECT_FALSE(ticket->waits());
  EXPECT_EQ(queue.next_due(0), base::TimePoint::max());
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(QueueTest, HigherPriorityDepartsFirst) {
  join('z', 1, 9);
  join('m', 2, 5);
  join('a', 3, 0);
  join('m', 4, 5);
  EXPECT_EQ(depart_all(), "ammz");
}

TEST_F(QueueTest, ThousandRequestsOfOneClientDoNotDelayAnotherClient) {
  for (int i = 0; i < 1000; ++i) join('x', i);
  join('y', 1000);
  EXPECT_EQ(depart(1), "xy");
  EXPECT_EQ(queue.size(), 999U);
}

TEST_F(QueueTest, ClientsOfOnePriorityTakeTurns) {
  join('a', 0), join('a', 1), join('a', 2);
  join('b', 3), join('b', 4);
  join('c', 5);
  EXPECT_EQ(depart_all(), "abcaba");
}

TEST_F(QueueTest, ClientThatSendsAgainWaitsBehindTheOtherClients) {
  join('a', 0), join('b', 1), join('c', 2);
  EXPECT_EQ(depart(0), "a");
  join('a', 3);
  EXPECT_EQ(depart_all(), "bca");
}

TEST_F(QueueTest, RequestsOfAClientDepartInOrder) {
  auto& first = join('a', 4);
  auto& second = join('a', 2);
  EXPECT_EQ(queue.take_due(0, at(2)), &first)
      << "the first request takes the departure of the second request";
  EXPECT_EQ(queue.take_due(0, at(4)), &second);
}

TEST_F(QueueTest, LastDepartureIsFreedIfARequestLeavesTheQueue) {
  join('a', 1);
  auto& second = join('a', 2);
  join('a', 3);
  EXPECT_EQ(queue.surplus(kLane), nullptr);
  queue.leave(second);
  ASSERT_NE(queue.surplus(kLane), nullptr);
  EXPECT_EQ(queue.surplus(kLane)->at, at(3));
  queue.drop_surplus(kLane);
  EXPECT_EQ(queue.surplus(kLane), nullptr);
  EXPECT_EQ(depart(2), "aa");
}

TEST_F(QueueTest, ClientKeepsItsTurnIfOneOfItsRequestsLeaves) {
  auto& first = join('a', 1);
  join('b', 2), join('a', 3);
  queue.leave(first);
  EXPECT_EQ(depart_all(), "ab");
}

// When `a` leaves, the limiter cannot take back the departure of `a`, because it has already promised a later
// departure.
TEST_F(QueueTest, NextRequestThatJoinsTakesAnUnusedDeparture) {
  queue.leave(join('a', 1));
  ASSERT_NE(queue.surplus(kLane), nullptr);
  join('b', 2);
  ASSERT_NE(queue.surplus(kLane), nullptr);
  EXPECT_EQ(queue.surplus(kLane)->at, at(2));
  EXPECT_EQ(depart(1), "b");
}

TEST_F(QueueTest, UnusedDepartureIsDroppedWhenItIsDue) {
  queue.leave(join('a', 1, 5, 1));
  EXPECT_EQ(queue.next_due(1), at(1)) << "the worker of the request that left drops the departure";
  EXPECT_EQ(queue.take_due(1, at(1)), nullptr);
  EXPECT_EQ(queue.next_due(1), base::TimePoint::max());
  EXPECT_EQ(queue.surplus(kLane), nullptr);
}

TEST_F(QueueTest, OfferedEarlierDepartureGoesToTheNextRequest) {
  join('a', 5), join('b', 6);
  queue.offer(departure(1), 1);
  EXPECT_EQ(depart(1), "a");
  EXPECT_EQ(queue.surplus(kLane)->at, at(6));
}

TEST_F(QueueTest, NextRequestCanBeTakenOnlyByItsOwnWorker) {
  join('a', 1, 5, 0);
  auto& b = join('b', 2, 5, 1);
  EXPECT_EQ(queue.next_due(0), at(1));
  EXPECT_EQ(queue.next_due(1), base::TimePoint::max());
  EXPECT_EQ(queue.take_due(1, at(9)), nullptr) << "the next request belongs to another worker";
  ASSERT_NE(queue.take_due(0, at(9)), nullptr);
  EXPECT_EQ(queue.next_due(0), base::TimePoint::max());
  EXPECT_EQ(queue.next_due(1), at(2));
  join('c', 3, 0, 0);
  EXPECT_EQ(queue.next_due(0), at(2)) << "the request has a higher priority, so it takes the first departure";
  EXPECT_EQ(queue.next_due(1), base::TimePoint::max());
  EXPECT_EQ(depart(2), "c");
  EXPECT_EQ(queue.take_due(1, at(3)), &b);
}

// Another rule delays the request of `a` until second 5.
TEST_F(QueueTest, OtherRequestsDepartBeforeARequestThatAnotherRuleDelays) {
  join('a', 6, 0, 0, kLane, at(5));
  join('b', 1), join('c', 2);
  EXPECT_EQ(depart(1), "b");
  EXPECT_EQ(depart(5), "c");
  EXPECT_EQ(depart(6), "a");
}

// The requests of `c` and `d` may not take departures before second 3. When `a` and `b` leave, the last two
// departures must therefore stay in the queue.
TEST_F(QueueTest, RequestsThatAnotherRuleDelaysKeepTheLastDeparturesWhenEarlierRequestsLeave) {
  auto& first = join('a', 1);
  auto& second = join('b', 2);
  join('c', 3, 5, 0, kLane, at(3)), join('d', 4, 5, 1, kLane, at(3));
  queue.leave(first), queue.leave(second);
  EXPECT_EQ(queue.surplus(kLane), nullptr)
      << "no request may leave before 3, so both need the last departures";
  EXPECT_EQ(depart(2), "");
  EXPECT_EQ(depart(3), "c");
  EXPECT_EQ(depart(4), "d");
}

TEST_F(QueueTest, NewRequestTakesADepartureThatIsTooEarlyForADelayedRequest) {
  auto& first = join('a', 1);
  join('b', 2, 5, 0, kLane, at(2));
  queue.leave(first);
  EXPECT_EQ(queue.surplus(kLane), nullptr);
  join('c', 3, 5, 1);
  ASSERT_NE(queue.surplus(kLane), nullptr) << "one of three departures is unused: the last";
  EXPECT_EQ(queue.surplus(kLane)->at, at(3));
  queue.drop_surplus(kLane);
  EXPECT_EQ(depart(1), "c");
  EXPECT_EQ(depart(2), "b");
}

TEST_F(QueueTest, RequestThatAnotherRuleDelaysDoesNotDelayOtherRequestsOfItsClient) {
  join('a', 2, 5, 0, kLane, at(2));
  join('a', 1);
  EXPECT_EQ(depart(1), "a") << "the client's second request takes the first departure";
  EXPECT_EQ(depart(2), "a");
}

// Both requests are delayed beyond their departures at seconds 1 and 2. This can happen because the
// conversion from Redis's time to local time is not exact.
TEST_F(QueueTest, NoRequestDepartsWhileAnotherRuleDelaysAllRequests) {
  auto& early = join('a', 1, 5, 0, kLane, at(5));
  join('b', 2, 5, 1, kLane, at(4));
  EXPECT_EQ(queue.next_due(0), base::TimePoint::max());
  EXPECT_EQ(queue.next_due(1), at(4)) << "the request of worker 1 may depart first";
  EXPECT_EQ(depart(3), "");
  EXPECT_EQ(depart(4), "b");
  EXPECT_EQ(queue.next_due(0), at(5));
  EXPECT_EQ(queue.take_due(0, at(5)), &early);
}

TEST_F(QueueTest, QueuesOfDifferentKeysAreIndependent) {
  auto& a = join('a', 1, 5, 0, kLane);
  join('b', 2, 5, 0, kOtherLane);
  queue.leave(a);
  EXPECT_EQ(queue.surplus(kOtherLane), nullptr);
  EXPECT_EQ(depart(1), "") << "a departure of one lane is not used in another";
  EXPECT_EQ(depart(2), "b");
}

TEST_F(QueueTest, CountsTheWaitingRequestsOfAClientAndPredictsItsTurn) {
  join('a', 1), join('a', 2), join('b', 3), join('a', 4, 9), join('u', 5, 0);
  const auto client = [](char name) { return limit::Key{static_cast<std::uint64_t>(name), 0}; };
  EXPECT_EQ(queue.waiting(kLane, client('a')), 3U);
  EXPECT_EQ(queue.waiting(kLane, client('b')), 1U);
  EXPECT_EQ(queue.waiting(kLane, client('?')), 0U);
  EXPECT_EQ(queue.waiting(kOtherLane, client('a')), 0U);
  EXPECT_EQ(queue.next_departure(kLane, client('u')), at(1));
  EXPECT_EQ(queue.next_departure(kLane, client('a')), at(2));
  EXPECT_EQ(queue.next_departure(kLane, client('b')), at(3));
  EXPECT_EQ(depart_all(), "uabaa");
}

}  // namespace
}  // namespace weir::proxy
