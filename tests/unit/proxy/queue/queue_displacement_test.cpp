// Tests which waiting request a new request displaces from a full lane (the queue of one key). A new request
// displaces a waiting one if the new request has a higher priority, or if its client has fewer waiting
// requests. Each test is one case.
#include "unit/proxy/queue/lanes.hpp"
#include "unit/proxy/queue/turn_oracle.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/proxy/queue.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::seconds;
using Eviction = Queue::Eviction;

// Tickets are named by their client and a number: a1, a2, b1.
class Displacement : public ::testing::Test {
 protected:
  ~Displacement() override {
    for (auto& [name, ticket] : tickets) {
      if (ticket->waits()) queue.leave(*ticket);
      queue.forget(*ticket);
    }
  }
  static Departure departure(std::int64_t second, limit::Cost cost = 1) {
    return {
        .at = at(second), .promised = at(second), .charge = {.key = kLane, .limiter = nullptr, .cost = cost}};
  }
  Queue::Ticket& join(const std::string& name, const Departure& departure, policy::Priority priority = 5,
                      base::TimePoint deadline = base::TimePoint::max(), base::TimePoint not_before = {}) {
    auto& ticket = tickets[name];
    const limit::Key client{static_cast<std::uint64_t>(name[0]), 0};
    ticket = std::make_unique<Queue::Ticket>(name[0] == 'a' ? 0 : 1, client, priority, not_before, deadline);
    queue.join(*ticket, departure);
    return *ticket;
  }
  static Newcomer newcomer(policy::Priority priority, char client = 'z', limit::Cost cost = 1,
                           std::uint64_t most = 100) {
    return {.lane = kLane,
            .client = {static_cast<std::uint64_t>(client), 0},
            .priority = priority,
            .cost = cost,
            .most = most};
  }
  // Returns the names of the worker's evicted tickets.
  std::string evicted(Queue::Worker worker) {
    std::string names;
    while (const auto* told = queue.take_evicted(worker))
      for (const auto& [name, ticket] : tickets)
        if (ticket.get() == told) names += name;
    return names;
  }

  std::map<std::string, std::unique_ptr<Queue::Ticket>> tickets;
  Queue queue{2};  // two workers
};

TEST_F(Displacement, LastRequestOfTheLowestPriorityIsDisplaced) {
  join("a1", departure(1), 3);
  join("a2", departure(2), 7);
  join("b1", departure(3), 7);
  join("b2", departure(4), 3);
  EXPECT_FALSE(queue.has_departure_for(newcomer(7))) << "no waiting request has a worse priority";
  ASSERT_TRUE(queue.has_departure_for(newcomer(6)));
  const auto [won, displaced] = queue.displace(newcomer(6));
  EXPECT_TRUE(displaced);
  EXPECT_EQ(won.at, at(4)) << "the last departure";
  EXPECT_EQ(evicted(0), "");
  EXPECT_EQ(evicted(1), "b1");
  EXPECT_EQ(tickets["b1"]->eviction(), Eviction::Displaced);
  join("c1", won, 6);
  std::vector<base::TimePoint> departures;
  for (Queue::Worker worker = 0; queue.size() != 0; worker = 1 - worker)
    while (const auto* ticket = queue.take_due(worker, at(100))) departures.push_back(ticket->departure().at);
  EXPECT_EQ(departures, (std::vector{at(1), at(2), at(3), at(4)})) << "no departure was lost or used twice";
  EXPECT_EQ(tickets["c1"]->departure().at, at(3)) << "the departure before the request of priority 7";
}

TEST_F(Displacement, RequestOfTheClientWithMostWaitingRequestsIsDisplaced) {
  join("b1", departure(1), 9);
  join("a1", departure(2), 9);
  join("a2", departure(3), 9);
  join("c1", departure(4), 9);
  (void)queue.displace(newcomer(0));
  EXPECT_EQ(evicted(0), "a2");
  (void)queue.displace(newcomer(0));
  EXPECT_EQ(evicted(1), "c1") << "of equal clients, the client whose turn comes last";
}

TEST_F(Displacement, NewRequestTakesAnUnusedDepartureAndDisplacesNoRequest) {
  join("a1", departure(1), 0);
  queue.offer(departure(2), 0);
  ASSERT_TRUE(queue.has_departure_for(newcomer(9)));
  const auto won = queue.displace(newcomer(9));
  EXPECT_EQ(won.departure.at, at(2));
  EXPECT_FALSE(won.displaced);
  EXPECT_EQ(evicted(0), "");
  EXPECT_FALSE(queue.has_departure_for(newcomer(9)));
}

TEST_F(Displacement, NewRequestCannotDisplaceARequestThatCostsLess) {
  join("a1", departure(1, 2), 9);
  EXPECT_TRUE(queue.has_departure_for(newcomer(0, 'z', 2)));
  EXPECT_FALSE(queue.has_departure_for(newcomer(0, 'z', 3)));
  auto elsewhere = newcomer(0);
  elsewhere.lane = {8, 8};
  EXPECT_FALSE(queue.has_departure_for(elsewhere));
}

TEST_F(Displacement, DisplacedRequestWhoseClientHasLeftIsNotReported) {
  auto& ticket = join("a1", departure(1), 9);
  (void)queue.displace(newcomer(0));
  EXPECT_FALSE(ticket.waits());
  EXPECT_TRUE(queue.has_evicted(0));
  queue.forget(ticket);
  EXPECT_FALSE(queue.has_evicted(0));
  EXPECT_EQ(evicted(0), "");
}

TEST_F(Displacement, TellsWhetherANewRequestMayDisplaceAQueuedRequest) {
  EXPECT_FALSE(queue.may_yield_to(0));
  auto& ticket = join("a1", departure(1), 4);
  EXPECT_TRUE(queue.may_yield_to(3));
  EXPECT_FALSE(queue.may_yield_to(4));
  join("b1", departure(2), 4);
  EXPECT_FALSE(queue.may_yield_to(4)) << "no client has two places";
  auto& second = join("a2", departure(3), 4);
  EXPECT_TRUE(queue.may_yield_to(4));
  EXPECT_FALSE(queue.may_yield_to(5));
  queue.leave(second);
  EXPECT_FALSE(queue.may_yield_to(4));
  queue.leave(ticket);
  queue.leave(*tickets["b1"]);
  EXPECT_FALSE(queue.may_yield_to(0));
}

TEST_F(Displacement, ClientDisplacesAnotherClientUntilBothHaveEquallyManyRequests) {
  for (int i = 1; i <= 4; ++i) join("a" + std::to_string(i), departure(i));
  EXPECT_FALSE(queue.has_departure_for(newcomer(5, 'a'))) << "the new request belongs to the same client";
  EXPECT_FALSE(queue.has_departure_for(newcomer(6, 'b'))) << "the new request has a worse priority";
  EXPECT_FALSE(queue.has_departure_for(newcomer(5, 'b', 1, 0))) << "the client has its maximum of places";
  ASSERT_TRUE(queue.has_departure_for(newcomer(5, 'b')));
  join("b1", queue.displace(newcomer(5, 'b')).departure);
  EXPECT_EQ(evicted(0), "a4") << "the latest request of the client";
  EXPECT_EQ(tickets["a4"]->eviction(), Eviction::Levelled);
  ASSERT_TRUE(queue.has_departure_for(newcomer(5, 'b')))
      << "after the displacement, both clients have two places";
  join("b2", queue.displace(newcomer(5, 'b')).departure);
  EXPECT_EQ(evicted(0), "a3");
  EXPECT_FALSE(queue.has_departure_for(newcomer(5, 'b')))
      << "the new client would have more places than the other";
  EXPECT_FALSE(queue.has_departure_for(newcomer(5, 'a'))) << "the displaced client gets no place again";
  EXPECT_TRUE(queue.has_departure_for(newcomer(5, 'c')));
}

TEST_F(Displacement, LowerPriorityIsDisplacedBeforeAClientWithManyRequests) {
  for (int i = 1; i <= 3; ++i) join("a" + std::to_string(i), departure(i));
  join("b1", departure(4), 6);
  (void)queue.displace(newcomer(5, 'c'));
  EXPECT_EQ(evicted(1), "b1");
  EXPECT_EQ(tickets["b1"]->eviction(), Eviction::Displaced);
}

// Another rule delays the ticket "a2", so "a2" cannot take an earlier departure and keeps the last one.
TEST_F(Displacement, RequestThatAnotherRuleDelaysKeepsItsDeparture) {
  join("a1", departure(1), 5);
  join("b1", departure(2), 7);
  join("a2", departure(3), 5, base::TimePoint::max(), at(3));
  ASSERT_TRUE(queue.has_departure_for(newcomer(6)));
  const auto won = queue.displace(newcomer(6)).departure;
  EXPECT_EQ(evicted(1), "b1");
  EXPECT_EQ(won.at, at(2));
  join("c1", won, 6);
  EXPECT_EQ(queue.take_due(0, at(1)), tickets["a1"].get());
  EXPECT_EQ(queue.take_due(1, at(2)), tickets["c1"].get());
  EXPECT_EQ(queue.take_due(0, at(3)), tickets["a2"].get());
}

TEST_F(Displacement, RequestThatCannotDepartBeforeItsDeadlineIsEvicted) {
  join("a1", departure(1), 5, at(3));
  join("a2", departure(2), 5, at(3));
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "");
  join("b1", departure(3), 0);
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "") << "a departure at the deadline is in time";
  join("b2", departure(4), 0);
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "a2");
  EXPECT_EQ(tickets["a2"]->eviction(), Eviction::Overtaken);
  ASSERT_NE(queue.surplus(kLane), nullptr);
  EXPECT_EQ(queue.surplus(kLane)->at, at(4)) << "the departure of the evicted request is unused again";
  EXPECT_EQ(tickets["a2"]->too_late_at(), at(4)) << "a new request would get that departure";
}

TEST_F(Displacement, PredictedTurnOfANewRequestIsAfterAllRequestsOfEqualOrHigherPriority) {
  auto& last = join("a1", departure(1), 6);
  auto& middle = join("b1", departure(2), 5);
  EXPECT_EQ(queue.departure_behind(middle), at(1))
      << "the departure of the request itself, which would be free";
  EXPECT_EQ(queue.departure_behind(last), at(2));
  join("b2", departure(3), 0);
  EXPECT_EQ(queue.departure_behind(middle), at(2));
  join("c1", departure(4), 5);
  EXPECT_EQ(queue.departure_behind(middle), at(3))
      << "a request that came later departs before a new request";
  EXPECT_EQ(queue.departure_behind(last), at(4));
}

}  // namespace
}  // namespace weir::proxy
