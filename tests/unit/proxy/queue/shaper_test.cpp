#include "weir/proxy/shaper.hpp"

#include "unit/net/sockets.hpp"
#include "unit/proxy/queue/lanes.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;

constexpr limit::Key kClient{100, 0};

struct Waiter {
  Waiter(const Shaper& shaper, const limit::Key& client, int an_id, policy::Priority priority,
         base::TimePoint deadline)
      : ticket(shaper, client, priority, {}, deadline), id(an_id) {}
  Shaper::Ticket ticket;
  int id;
  Departure departure;
  Shaper::QueueResult turn{};
  bool done = false;
  base::TimePoint ended_at{};
};

// One worker with a real limiter.
class ShaperTest : public ::testing::Test {
 protected:
  ShaperTest() { slow = limit::LeakyBucket::make({1, std::chrono::hours(1)}, 100, base::kForever).value(); }

  // Charges the key table and returns the departure that the table promises. The first departure of a slow
  // lane is due at once. open() takes this departure, so that later requests wait.
  Departure promise(const limit::Key& lane, const limit::Limiter& limiter) {
    const limit::Charge charge{.key = lane, .limiter = &limiter};
    const auto now = clock.now();
    limit::Outcome outcome;
    (void)table.charge({&charge, 1}, now, {&outcome, 1});
    EXPECT_TRUE(outcome.allowed);
    return {.at = now + outcome.delay, .promised = now + outcome.delay, .charge = charge};
  }
  void open(const limit::Key& lane, const limit::Limiter& limiter) { (void)promise(lane, limiter); }

  Waiter& join(const limit::Key& lane, const limit::Limiter& limiter, const limit::Key& client = kClient,
               std::uint64_t most = 1000, policy::Priority priority = 5,
               base::TimePoint deadline = base::TimePoint::max()) {
    const auto id = static_cast<int>(waiters.size());
    waiters.push_back(std::make_unique<Waiter>(shaper, client, id, priority, deadline));
    auto& waiter = *waiters.back();
    waiter.departure = promise(lane, limiter);
    net::spawn(context.get_executor(), take_timestamp(waiter, most), [](const std::exception_ptr&) {});
    context.restart();
    context.poll();  // runs the event loop until the request waits
    return waiter;
  }
  net::Task<void> take_timestamp(Waiter& waiter, std::uint64_t most) {
    waiter.turn = co_await shaper.wait(waiter.ticket, waiter.departure, most);
    waiter.ended_at = clock.now();
    waiter.done = true;
    ended.push_back(waiter.id);
  }
  bool all_end() {
    return net::turn_until(context, [this] { return ended.size() == waiters.size(); });
  }

  limit::Limiter quick = limit::LeakyBucket::make({1, milliseconds(20)}, 100, base::kForever).value();
  limit::Limiter slow = quick;
  net::asio::io_context context{1};
  net::Clock clock;
  limit::KeyTable table{1000};
  SharedQueue shared{1};
  Shaper shaper{context.get_executor(), clock, shared, table, nullptr};
  std::vector<std::unique_ptr<Waiter>> waiters;
  std::vector<int> ended;
};

TEST_F(ShaperTest, RequestsDepartInOrderAndNeverEarly) {
  open(kLane, quick);
  for (int i = 0; i < 10; ++i) join(kLane, quick);
  EXPECT_EQ(shaper.waiting(), 10U);
  ASSERT_TRUE(all_end());
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const auto& waiter : waiters) {
    EXPECT_EQ(waiter->turn.end, Shaper::End::Departed);
    EXPECT_GE(waiter->ended_at, waiter->ticket.departure().at);
  }
  EXPECT_EQ(shaper.waiting(), 0U);
}

TEST_F(ShaperTest, RequestWithADepartureInThePastDepartsAtOnce) {
  join(kLane, quick);
  EXPECT_TRUE(waiters[0]->done) << "a request that departs at once does not wait for the event loop";
  EXPECT_EQ(waiters[0]->turn.end, Shaper::End::Departed);
}

TEST_F(ShaperTest, TimerWakesEarlierIfANewDepartureIsEarlier) {
  open(kOtherLane, slow), open(kLane, quick);
  join(kOtherLane, slow);
  auto& soon = join(kLane, quick);
  ASSERT_TRUE(net::turn_until(context, [&] { return soon.done; }));
  EXPECT_EQ(soon.turn.end, Shaper::End::Departed);
  EXPECT_EQ(shaper.waiting(), 1U);
  waiters[0]->ticket.leave();
  EXPECT_TRUE(all_end());
}

TEST_F(ShaperTest, LastDepartureReturnsToTheLimiterIfARequestLeaves) {
  open(kLane, slow);
  for (int i = 0; i < 4; ++i) join(kLane, slow);
  const auto last = waiters[3]->departure.at;
  waiters[1]->ticket.leave();
  ASSERT_TRUE(net::turn_until(context, [&] { return waiters[1]->done; }));
  EXPECT_EQ(waiters[1]->turn.end, Shaper::End::Left);
  EXPECT_EQ(shaper.waiting(), 3U);
  EXPECT_EQ(join(kLane, slow).departure.at, last) << "the limiter has the departure again";
  for (auto& waiter : waiters) waiter->ticket.leave();
  EXPECT_TRUE(all_end());
}

// A client that retried earlier than retry_after would be overtaken again by other requests.
TEST_F(ShaperTest, RetryAfterOfAnOvertakenRequestIsTheTimeWhenARetryWouldDepart) {
  open(kLane, slow);
  const auto began = clock.now();
  auto& low = join(kLane, slow, kClient, 1000, 5, began + std::chrono::minutes(90));
  join(kLane, slow, {200, 0}, 1000, 0);
  ASSERT_TRUE(net::turn_until(context, [&] { return low.done; }));
  EXPECT_EQ(low.turn.end, Shaper::End::Overtaken);
  auto& again = join(kLane, slow);
  const auto turn = shared.queue.next_departure(kLane, kClient);
  EXPECT_EQ(turn, waiters[1]->departure.at) << "the other request leaves an hour earlier than promised";
  again.ticket.leave();
  ASSERT_TRUE(net::turn_until(context, [&] { return again.done; }));
  // `low` was overtaken, and `again` has left the queue. For both, retry_after is the time when a new request
  // in the same position would depart.
  for (const auto* told : {&low, &again}) {
    EXPECT_GE(told->turn.retry_after, turn - told->ended_at);
    EXPECT_LE(told->turn.retry_after, turn - began);
  }
  waiters[1]->ticket.leave();
  EXPECT_TRUE(all_end());
}

// Uses the limiter `quick`, because the test waits until the second request departs.
TEST_F(ShaperTest, WaitingRequestTakesTheDepartureOfARequestThatLeaves) {
  open(kLane, quick);
  join(kLane, quick);
  auto& second = join(kLane, quick);
  const auto first = waiters[0]->departure.at;
  waiters[0]->ticket.leave();
  ASSERT_TRUE(all_end());
  EXPECT_EQ(waiters[0]->turn.end, Shaper::End::Left);
  EXPECT_EQ(second.turn.end, Shaper::End::Departed);
  EXPECT_EQ(second.ticket.departure().at, first);
}

TEST_F(ShaperTest, LimitsTheWaitingRequestsOfAClient) {
  open(kLane, slow);
  join(kLane, slow, kClient, 2), join(kLane, slow, kClient, 2);
  auto& third = join(kLane, slow, kClient, 2);
  ASSERT_TRUE(third.done);
  EXPECT_EQ(third.turn.end, Shaper::End::Crowded);
  const auto wait = waiters[0]->departure.at - clock.now();
  EXPECT_GE(third.turn.retry_after, wait);
  EXPECT_LE(third.turn.retry_after, wait + std::chrono::minutes(1));
  const auto& other = join(kLane, slow, {200, 0}, 2);
  EXPECT_FALSE(other.done);
  EXPECT_EQ(other.departure.at, third.departure.at) << "a refused request took a departure";
  for (auto& waiter : waiters) waiter->ticket.leave();
  EXPECT_TRUE(all_end());
}

TEST_F(ShaperTest, DisplacedRequestIsWokenAtOnce) {
  open(kLane, slow);
  auto& worse = join(kLane, slow);
  const auto newcomer = [&](policy::Priority priority, std::uint64_t most = 10) {
    return Newcomer{.lane = kLane, .client = {200, 0}, .priority = priority, .cost = 1, .most = most};
  };
  const auto agree = [] { return true; };
  EXPECT_FALSE(shaper.displace(newcomer(5), agree)) << "the other request has no worse priority";
  EXPECT_FALSE(shaper.displace(newcomer(0), [] { return false; })) << "another rule refused";
  EXPECT_FALSE(shaper.displace(newcomer(0, 0), agree)) << "the client has its maximum of places";
  EXPECT_FALSE(worse.done);
  const auto won = shaper.displace(newcomer(0), agree);
  ASSERT_TRUE(won);
  EXPECT_EQ(won->departure.at, worse.departure.at);
  ASSERT_TRUE(all_end());
  EXPECT_EQ(worse.turn.end, Shaper::End::Displaced);
  EXPECT_EQ(shaper.waiting(), 0U);
}

TEST_F(ShaperTest, DisplacesARequestOfAClientWithMoreWaitingRequests) {
  open(kLane, slow);
  join(kLane, slow), join(kLane, slow);
  const Newcomer other{.lane = kLane, .client = {200, 0}, .priority = 5, .cost = 1, .most = 10};
  const auto won = shaper.displace(other, [] { return true; });
  ASSERT_TRUE(won);
  ASSERT_TRUE(net::turn_until(context, [&] { return waiters[1]->done; }));
  EXPECT_EQ(waiters[1]->turn.end, Shaper::End::Levelled);
  EXPECT_FALSE(waiters[0]->done);
  EXPECT_FALSE(shaper.displace(other, [] { return true; })) << "the waiting client would have no place left";
  waiters[0]->ticket.leave();
  EXPECT_TRUE(all_end());
}

TEST_F(ShaperTest, UnusedDepartureIsPassedToTheNextRequest) {
  open(kLane, quick);
  auto& first = join(kLane, quick);
  auto& second = join(kLane, quick);
  ASSERT_TRUE(net::turn_until(context, [&] { return first.done; }));
  shaper.pass_on(first.ticket.departure());
  ASSERT_TRUE(all_end());
  EXPECT_EQ(second.ticket.departure().at, first.ticket.departure().at);
}

TEST_F(ShaperTest, NoTimerRunsWithoutWaitingRequests) {
  open(kLane, slow);
  join(kLane, slow);
  waiters[0]->ticket.leave();
  context.restart();
  context.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(waiters[0]->done);
  EXPECT_TRUE(context.stopped()) << "the event loop still has work";
  EXPECT_EQ(shaper.waiting(), 0U);
}

// The first request gives up (Ticket::leave()) in the same turn of the event loop in which its departure is
// due. Each of the two requests must end exactly once.
TEST_F(ShaperTest, RequestThatLeavesWhenItsDepartureIsDueEndsOnlyOnce) {
  open(kLane, quick);
  join(kLane, quick), join(kLane, quick);
  net::asio::post(context, [this] {
    std::this_thread::sleep_until(clock.steady(waiters[0]->departure.at + milliseconds(5)));
    waiters[0]->ticket.leave();
  });
  ASSERT_TRUE(all_end());
  EXPECT_EQ(waiters[1]->turn.end, Shaper::End::Departed);
  EXPECT_EQ(shaper.waiting(), 0U);
}

// The event loop of a worker is destroyed while requests of the worker wait.
TEST_F(ShaperTest, RequestWhoseEventLoopIsDestroyedLeavesTheQueue) {
  SharedQueue own{1};
  {
    net::asio::io_context loop{1};
    Shaper other(loop.get_executor(), clock, own, table, nullptr);
    open(kOtherLane, slow);
    const auto wait_for_ever = [](Shaper& by, Departure departure) -> net::Task<void> {
      Shaper::Ticket ticket(by, kClient, 5);
      (void)co_await by.wait(ticket, departure, 1);
    };
    net::spawn(loop.get_executor(), wait_for_ever(other, promise(kOtherLane, slow)),
               [](const std::exception_ptr&) {});
    EXPECT_EQ(own.queue.size(), 1U);
  }
  EXPECT_EQ(own.queue.size(), 0U);
}

}  // namespace
}  // namespace weir::proxy
