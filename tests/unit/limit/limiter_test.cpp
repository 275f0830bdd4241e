// Tests the algorithms that space requests: sequences with known outcomes, long runs and extreme numbers.
// limit_vectors.hpp has more sequences.
#include "weir/limit/limiter.hpp"

#include "unit/limit/traffic.hpp"

#include <array>
#include <vector>

namespace weir::limit {
namespace {

// A client that sends its requests one after another. Stores the state of its key.
class Client {
 public:
  explicit Client(Limiter limiter) : limiter_(limiter) {}
  Outcome ask(Duration at, Cost cost = 1) {
    const Step s = step(limiter_, cell_, kStart + at, cost);
    cell_ = s.next;
    return s.outcome;
  }
  void give_back(Duration departure, Cost cost = 1) {
    cell_ = refund(limiter_, cell_, kStart + departure, cost);
  }

 private:
  Limiter limiter_;
  Cell cell_;
};

TEST(TokenBucket, RetryAfterIsRoundedUpButTheStateStaysExact) {
  Client client(token_bucket("3/7s", 1));  // the interval is 2 333 333⅓ µs
  EXPECT_TRUE(client.ask(0us).allowed);
  EXPECT_EQ(client.ask(0us).retry_after, 2'333'334us);
  EXPECT_FALSE(client.ask(2'333'333us).allowed);
  EXPECT_TRUE(client.ask(2'333'334us).allowed);
  EXPECT_FALSE(client.ask(4'666'667us).allowed);
  EXPECT_TRUE(client.ask(4'666'668us).allowed);
}

TEST(LeakyBucket, SchedulesDeparturesAtAConstantRate) {
  Client client(leaky_bucket("100/s", 50));
  for (int i = 0; i <= 50; ++i) {
    const auto outcome = client.ask(0ms);
    EXPECT_TRUE(outcome.allowed);
    EXPECT_EQ(outcome.delay, 10ms * i);
  }
  EXPECT_EQ(client.ask(0ms), (Outcome{.retry_after = 10ms, .reset_after = 510ms, .more_after = 10ms}));
  EXPECT_EQ(client.ask(10ms).delay, 500ms);
}

TEST(LeakyBucket, QueueLengthCountsRequestsAndNotTheirCosts) {
  for (const Cost cost : {1, 2, 5, 7}) {
    Client client(leaky_bucket("10/s", 3));
    for (int i = 0; i <= 3; ++i) {
      const auto outcome = client.ask(0ms, cost);
      EXPECT_TRUE(outcome.allowed) << i << " of cost " << cost;
      EXPECT_EQ(outcome.delay, 100ms * i * cost);
      EXPECT_EQ(outcome.remaining, 3U - i);
    }
    EXPECT_EQ(client.ask(0ms, cost).retry_after, 100ms * cost);
    EXPECT_TRUE(client.ask(100ms * cost, cost).allowed);
  }
}

// A queue rejects very high costs. Otherwise a client that declares its own cost could block all other
// clients for years.
TEST(LeakyBucket, CostAbove1000IsNeverAdmittedIfTheQueueIsShorter) {
  Client client(leaky_bucket("10/s", 3));
  EXPECT_EQ(client.ask(0ms, 1001).retry_after, base::kForever);
  EXPECT_EQ(client.ask(0ms, kMaxCost).retry_after, base::kForever);
  EXPECT_EQ(client.ask(0ms, 1).delay, 0ms) << "the rejected request was charged";
  EXPECT_TRUE(client.ask(1s, 1000).allowed);
}

TEST(LeakyBucket, LargestCostIsTheQueueLengthPlusOneIfTheQueueIsLong) {
  EXPECT_TRUE(Client(leaky_bucket("1/hour", 4'999)).ask(0ms, 5'000).allowed);
  EXPECT_EQ(Client(leaky_bucket("1/hour", 4'999)).ask(0ms, 5'001).retry_after, base::kForever);
}

// The request of cost 5 occupies the queue for 500 ms. A request may wait at most three times as long as it
// occupies the queue: 300 ms for a cost of 1, 600 ms for a cost of 2.
TEST(LeakyBucket, QueuedRequestOfCost5CountsAsFiveRequestsOfCost1) {
  Client client(leaky_bucket("10/s", 3));
  EXPECT_TRUE(client.ask(0ms, 5).allowed);
  EXPECT_EQ(client.ask(0ms, 1).retry_after, 200ms);
  EXPECT_EQ(client.ask(0ms, 2).delay, 500ms);
}

TEST(LeakyBucket, DeparturesAtFractionalIntervalsNeverDrift) {
  Client client(leaky_bucket("3/7s", 3'000'000));
  for (std::int64_t i = 0; i < 3'000'000; ++i)
    ASSERT_EQ(client.ask(0us).delay.count(), (i * 7'000'000 + 2) / 3) << "departure " << i;
}

TEST(LeakyBucket, RejectsRequestsThatWouldWaitLongerThanMaxWait) {
  Client client(leaky_bucket("10/s", 100, 250ms));
  for (const auto delay : {0ms, 100ms, 200ms}) EXPECT_EQ(client.ask(0ms).delay, delay);
  EXPECT_EQ(client.ask(0ms), (Outcome{.retry_after = 50ms, .reset_after = 300ms, .more_after = 50ms}));
  EXPECT_EQ(client.ask(50ms).delay, 250ms);
}

// Regression: the load meter (which measures how full a queue is) ignored max_wait. It measured a queue as
// nearly empty although max_wait admitted no further request.
TEST(LeakyBucket, NumberOfQueuedRequestsIsAlsoBoundedByMaxWait) {
  struct Case {
    std::uint64_t queue;
    Duration max_wait;
    std::uint64_t most;
  };
  for (const Case& c : {Case{100, std::chrono::seconds(4), 4}, Case{3, std::chrono::seconds(10), 3},
                        Case{100, base::kForever, 100}}) {
    const Limiter limiter = LeakyBucket::make({1, std::chrono::seconds(1)}, c.queue, c.max_wait).value();
    EXPECT_EQ(most_waiting(limiter), c.most);
    Cell cell = step(limiter, {}, kStart, 1).next;
    std::uint64_t waiting = 0;
    for (auto next = step(limiter, cell, kStart, 1); next.outcome.allowed;
         next = step(limiter, cell, kStart, 1), ++waiting)
      cell = next.next;
    EXPECT_EQ(waiting, c.most);
  }
  EXPECT_EQ(most_waiting(LeakyBucket::make({1, std::chrono::seconds(1)}, 9, Duration(1)).value()), 1);
}

TEST(LeakyBucket, OnlyTheLastPromisedDepartureCanBeRefunded) {
  Client client(leaky_bucket("10/s", 5));
  for (const auto delay : {0ms, 100ms, 200ms}) EXPECT_EQ(client.ask(0ms).delay, delay);
  client.give_back(100ms);  // has no effect, because another request has a later departure, at 200 ms
  EXPECT_EQ(client.ask(0ms).delay, 300ms);
  client.give_back(300ms);
  client.give_back(200ms);
  EXPECT_EQ(client.ask(0ms).delay, 200ms);
}

// Sends requests for the time `how_long`, each as soon as the limiter admits it. Returns the number of
// admissions.
std::uint64_t greedy(const Limiter& limiter, Duration how_long) {
  Client client(limiter);
  std::uint64_t admitted = 0;
  for (Duration at{0}; at <= how_long;) {
    const auto outcome = client.ask(at);
    if (outcome.allowed) ++admitted;
    at += outcome.retry_after;
  }
  return admitted;
}

TEST(LongRun, NumberOfAdmittedRequestsIsExactOverLongPeriods) {
  constexpr auto kYear = std::chrono::duration_cast<Duration>(365 * 24h);
  EXPECT_EQ(greedy(token_bucket("3/7s", 5), kYear), 5U + 31'536'000ULL * 3 / 7);
  EXPECT_EQ(greedy(gcra("10000/h", 0), 365 * 4h), 1U + 10'000ULL * 1'460);
  EXPECT_EQ(greedy(token_bucket("999983/h", 2), 1h), 2U + 999'983U);
  EXPECT_EQ(greedy(token_bucket("1/36500day", 1), 24h * 36'500), 2);
}

TEST(Limiter, LargestBurstAtTheFastestRateRefillsInAMicrosecond) {
  Client client(token_bucket("1000000000/us", 1'000'000'000));
  EXPECT_TRUE(client.ask(0us, 1'000'000'000).allowed);
  EXPECT_EQ(client.ask(0us).retry_after, 1us);
  EXPECT_TRUE(client.ask(1us, 1'000'000'000).allowed);
}

TEST(Limiter, LimiterCannotBeMadeWithImpossibleParameters) {
  EXPECT_FALSE(TokenBucket::make(rate("10/s"), 0));
  EXPECT_FALSE(TokenBucket::make(rate("1/36500day"), 2)) << "refilling takes two hundred years";
  EXPECT_TRUE(TokenBucket::make(rate("1/36500day"), 1));
  const auto slow = Gcra::make(rate("1/day"), 1'000'000);
  ASSERT_FALSE(slow);
  EXPECT_NE(slow.error().message.find("1/day"), std::string::npos);
  EXPECT_FALSE(Gcra::make(rate("10/s"), ~std::uint64_t{0}));
  EXPECT_FALSE(LeakyBucket::make(rate("10/s"), ~std::uint64_t{0}, base::kForever));
}

TEST(Limiter, DescriptionOfALimiterShowsAlgorithmRateAndBounds) {
  EXPECT_EQ(describe(token_bucket("10/s", 100)), "token_bucket 10/s, burst 100");
  EXPECT_EQ(describe(gcra("3/7s", 0)), "gcra 3/7s, burst 0");
  EXPECT_EQ(describe(leaky_bucket("100/s", 50)), "leaky_bucket 100/s, queue 50");
  EXPECT_EQ(describe(leaky_bucket("100/s", 50, 250ms)), "leaky_bucket 100/s, queue 50, max_wait 250ms");
  EXPECT_EQ(window(token_bucket("10/s", 100)), 10s);
  EXPECT_EQ(quota(leaky_bucket("100/s", 50)), 50);
  EXPECT_EQ(quota(gcra("10/s", 2)), 3);
}

TEST(Limiter, StateConvertedToAThousandfoldRateHasAThousandTimesTheUsedUnits) {
  const Limiter coarse = token_bucket("1/s", 10);
  const Limiter fine = token_bucket("1000/s", 10'000);
  const Cell cell = step(coarse, Cell{}, kStart, 4).next;
  EXPECT_EQ(step(fine, carry_over(coarse, cell, fine), kStart, 1).outcome.remaining, 5'999);
}

// The limiters of a rule's tiers, overrides and elastic limit may share one state. Two limiters with the same
// period may charge this state in turn. The conversions between their units must not change it.
TEST(Limiter, StateIsUnchangedAfterRepeatedConversionBetweenTwoLimits) {
  const auto minute = [](std::uint64_t count) { return Rate{count, std::chrono::minutes(1)}; };
  const auto whole = [](const auto& made) { return Limiter(*made); };
  const std::pair<Limiter, Limiter> pairs[] = {
      {whole(SlidingWindow::make(minute(40))), whole(SlidingWindow::make(minute(30)))},
      {whole(SlidingLog::make(minute(40))), whole(SlidingLog::make(minute(30)))},
      {whole(SlidingLog::make(minute(40), 7)), whole(SlidingLog::make(minute(30), 7))}};
  for (const auto& [one, other] : pairs) {
    const Cell first = step(one, Cell{}, kStart, 5).next;
    Cell cell = first;
    for (int hop = 0; hop < 10; ++hop) cell = carry_over(other, carry_over(one, cell, other), one);
    EXPECT_EQ(cell.words, first.words) << describe(one);
    EXPECT_EQ(drained_at(one, cell), drained_at(one, first)) << describe(one);
  }
}

}  // namespace
}  // namespace weir::limit
