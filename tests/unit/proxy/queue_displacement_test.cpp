// A full lane and newcomers of better priorities: by hand, and by laws over a real leaky bucket.
#include "weir/limit/limiter.hpp"
#include "weir/proxy/queue.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::seconds;
using Eviction = Queue::Eviction;

constexpr limit::Key kLane{7, 7};
constexpr Queue::Worker kWorkers = 2;

base::TimePoint at(std::int64_t second) {
  return base::TimePoint(seconds(1'000 + second));
}

// Tickets that are named by their client and its count: a1, a2, b1.
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
                      base::TimePoint deadline = base::TimePoint::max()) {
    auto& ticket = tickets[name];
    const limit::Key client{static_cast<std::uint64_t>(name[0]), 0};
    ticket = std::make_unique<Queue::Ticket>(name[0] == 'a' ? 0 : 1, client, priority, base::TimePoint{},
                                             deadline);
    queue.join(*ticket, departure);
    return *ticket;
  }
  // Who of the worker is told that it was evicted.
  std::string evicted(Queue::Worker worker) {
    std::string names;
    while (const auto* told = queue.take_evicted(worker))
      for (const auto& [name, ticket] : tickets)
        if (ticket.get() == told) names += name;
    return names;
  }

  std::map<std::string, std::unique_ptr<Queue::Ticket>> tickets;
  Queue queue{kWorkers};
};

TEST_F(Displacement, WhoWaitsLastOfTheLowestPriorityGivesWay) {
  join("a1", departure(1), 3);
  join("a2", departure(2), 7);
  join("b1", departure(3), 7);
  join("b2", departure(4), 3);
  EXPECT_FALSE(queue.has_place_for(kLane, 7, 1)) << "nobody waits with a worse one";
  ASSERT_TRUE(queue.has_place_for(kLane, 6, 1));
  const auto won = queue.displace(kLane, at(9));
  EXPECT_EQ(won.at, at(4)) << "the last departure";
  EXPECT_EQ(evicted(0), "");
  EXPECT_EQ(evicted(1), "b1");
  EXPECT_EQ(tickets["b1"]->eviction(), Eviction::Displaced);
  EXPECT_EQ(tickets["b1"]->retry_at(), at(9));
  join("c1", won, 6);
  std::vector<base::TimePoint> departures;
  for (Queue::Worker worker = 0; queue.size() != 0; worker = 1 - worker)
    while (const auto* ticket = queue.take_due(worker, at(100))) departures.push_back(ticket->departure().at);
  EXPECT_EQ(departures, (std::vector{at(1), at(2), at(3), at(4)})) << "none was lost, none taken twice";
  EXPECT_EQ(tickets["c1"]->departure().at, at(3)) << "before the one of priority 7";
}

TEST_F(Displacement, ItIsOneOfTheClientWithTheMostPlaces) {
  join("b1", departure(1), 9);
  join("a1", departure(2), 9);
  join("a2", departure(3), 9);
  join("c1", departure(4), 9);
  (void)queue.displace(kLane, at(9));
  EXPECT_EQ(evicted(0), "a2");
  (void)queue.displace(kLane, at(9));
  EXPECT_EQ(evicted(1), "c1") << "of equals the one whose turn comes last";
}

TEST_F(Displacement, ASurplusDepartureIsForWhoeverComes) {
  join("a1", departure(1), 0);
  queue.offer(departure(2), 0);
  ASSERT_TRUE(queue.has_place_for(kLane, 9, 1));
  EXPECT_EQ(queue.displace(kLane, at(9)).at, at(2));
  EXPECT_EQ(evicted(0), "");
  EXPECT_FALSE(queue.has_place_for(kLane, 9, 1));
}

TEST_F(Displacement, NobodyPaysMoreThanWasPaid) {
  join("a1", departure(1, 2), 9);
  EXPECT_TRUE(queue.has_place_for(kLane, 0, 2));
  EXPECT_FALSE(queue.has_place_for(kLane, 0, 3));
  EXPECT_FALSE(queue.has_place_for({8, 8}, 0, 1)) << "another lane";
}

TEST_F(Displacement, WhoLeavesBeforeItIsToldIsForgotten) {
  auto& ticket = join("a1", departure(1), 9);
  (void)queue.displace(kLane, at(9));
  EXPECT_FALSE(ticket.waits());
  EXPECT_TRUE(queue.has_evicted(0));
  queue.forget(ticket);
  EXPECT_FALSE(queue.has_evicted(0));
  EXPECT_EQ(evicted(0), "");
}

TEST_F(Displacement, AGlanceTellsWhetherAnybodyWorseWaits) {
  EXPECT_FALSE(queue.holds_worse(0));
  auto& ticket = join("a1", departure(1), 4);
  EXPECT_TRUE(queue.holds_worse(3));
  EXPECT_FALSE(queue.holds_worse(4));
  queue.leave(ticket);
  EXPECT_FALSE(queue.holds_worse(0));
}

TEST_F(Displacement, WhoIsOvertakenPastItsDeadlineIsEvictedAtOnce) {
  join("a1", departure(1), 5, at(3));
  join("a2", departure(2), 5, at(3));
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "");
  join("b1", departure(3), 0);
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "") << "at the deadline is in time";
  join("b2", departure(4), 0);
  queue.evict_overtaken(kLane);
  EXPECT_EQ(evicted(0), "a2");
  EXPECT_EQ(tickets["a2"]->eviction(), Eviction::Overtaken);
  ASSERT_NE(queue.surplus(kLane), nullptr);
  EXPECT_EQ(queue.surplus(kLane)->at, at(4)) << "its departure is free again";
}

// Anybody comes at any time, joins at once, and sometimes leaves. What must hold:
//
//  1. never more than `queue` wait;
//  2. nobody is refused while one of a worse priority waits, nor while a departure is surplus;
//  3. who gives way has the worst priority, and none of that priority has more places than its client had;
//  4. no departure is taken twice, and departures are never less than period/count apart.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed)
      : random_(seed),
        rate_{1, seconds(1 + below(5))},
        places_(1 + below(8)),
        limiter_(limit::LeakyBucket::make(rate_, places_, base::kForever).value()) {}
  ~Traffic() {
    for (auto& ticket : tickets_)
      if (ticket->waits()) queue_.leave(*ticket);
  }

  void run() {
    for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
      const auto choice = below(8);
      if (choice < 5) come();
      if (choice == 5) leave();
      if (choice > 5) pass();
      ASSERT_LE(queue_.size(), places_);
    }
  }
  std::size_t displaced = 0, refused = 0, departed = 0;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void come() {
    const auto priority = static_cast<policy::Priority>(below(4));
    const auto step = limit::step(limiter_, cell_, now_, 1);
    if (!step.outcome.allowed && !queue_.has_place_for(kLane, priority, 1)) return note_refused(priority);
    Departure departure{
        .at = now_ + step.outcome.delay, .promised = now_ + step.outcome.delay, .charge = charge()};
    if (step.outcome.allowed)
      cell_ = step.next;
    else
      departure = displace();
    if (step.outcome.allowed && step.outcome.delay.count() == 0) return note_departure(now_);
    tickets_.push_back(std::make_unique<Queue::Ticket>(below(kWorkers), limit::Key{below(3), 0}, priority));
    queue_.join(*tickets_.back(), departure);
    take_due();
  }

  Departure displace() {
    const auto before = places_by_client();
    const auto had_surplus = queue_.surplus(kLane) != nullptr;
    const auto departure = queue_.displace(kLane, now_ + step_back());
    const Queue::Ticket* loser = nullptr;
    for (Queue::Worker worker = 0; worker < kWorkers; ++worker)
      while (const auto* told = queue_.take_evicted(worker)) {
        EXPECT_EQ(loser, nullptr) << "one for one";
        EXPECT_EQ(told->worker(), worker);
        loser = told;
      }
    EXPECT_EQ(loser == nullptr, had_surplus);
    if (loser == nullptr) return departure;
    ++displaced;
    const auto own = before.at({loser->priority(), loser->client()});
    for (const auto& [who, places] : before) {
      EXPECT_LE(who.first, loser->priority()) << "a worse one was spared";
      EXPECT_TRUE(who.first < loser->priority() || places <= own) << "a client with more was spared";
    }
    return departure;
  }

  void note_refused(policy::Priority priority) {
    ++refused;
    for (const auto& [who, places] : places_by_client())
      ASSERT_LE(who.first, priority) << "refused though a worse one waits";
    ASSERT_EQ(queue_.surplus(kLane), nullptr) << "refused though a departure is free";
  }

  void leave() {
    if (tickets_.empty()) return;
    auto& ticket = *tickets_[below(tickets_.size())];
    if (!ticket.waits()) return;
    queue_.leave(ticket);
    while (const auto* surplus = queue_.surplus(kLane)) {
      const auto back = limit::refund(limiter_, cell_, surplus->promised, 1);
      if (back == cell_) break;
      cell_ = back;
      queue_.drop_surplus(kLane);
    }
  }

  void pass() {
    now_ += base::Duration(below(3 * static_cast<std::uint64_t>(rate_.period.count())));
    take_due();
  }

  void take_due() {
    for (bool any = true; any;) {
      any = false;
      for (Queue::Worker worker = 0; worker < kWorkers; ++worker)
        while (const auto* ticket = queue_.take_due(worker, now_)) {
          note_departure(ticket->departure().at);
          any = true;
        }
    }
  }

  void note_departure(base::TimePoint departure) {
    const auto next = departures_.lower_bound(departure);
    ASSERT_TRUE(next == departures_.end() || *next - departure >= rate_.period) << "too close, or twice";
    ASSERT_TRUE(next == departures_.begin() || departure - *std::prev(next) >= rate_.period) << "too close";
    departures_.insert(departure);
    ++departed;
  }

  [[nodiscard]] std::map<std::pair<policy::Priority, limit::Key>, int> places_by_client() const {
    std::map<std::pair<policy::Priority, limit::Key>, int> places;
    for (const auto& ticket : tickets_)
      if (ticket->waits()) ++places[{ticket->priority(), ticket->client()}];
    return places;
  }
  [[nodiscard]] limit::Charge charge() const { return {.key = kLane, .limiter = &limiter_}; }
  [[nodiscard]] base::Duration step_back() const { return rate_.period; }

  std::mt19937_64 random_;
  limit::Rate rate_;
  const std::uint64_t places_;
  limit::Limiter limiter_;
  limit::Cell cell_;
  base::TimePoint now_{std::chrono::hours(500'000)};
  std::vector<std::unique_ptr<Queue::Ticket>> tickets_;
  std::set<base::TimePoint> departures_;
  Queue queue_{kWorkers};
};

TEST(DisplacementLaws, HoldForAnyTraffic) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::size_t displaced = 0, refused = 0, departed = 0;
  for (std::uint64_t i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(seed + i));
    Traffic traffic(seed + i);
    traffic.run();
    displaced += traffic.displaced, refused += traffic.refused, departed += traffic.departed;
  }
  std::cout << displaced << " displaced, " << refused << " refused, " << departed << " departed\n";
  EXPECT_GT(std::min({displaced, refused, departed}), 10'000U);
}

}  // namespace
}  // namespace weir::proxy
