// Concurrency limits: bounds, permits, and a limit that follows latency, tested on a simulated server.
#include "weir/limit/concurrency.hpp"

#include "unit/limit/traffic.hpp"

#include "weir/limit/permit.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <vector>

namespace weir::limit {
namespace {

Limiter in_flight(std::uint64_t limit) {
  return Concurrency::make(limit).value();
}
AdaptiveConcurrency adaptive(std::uint64_t min, std::uint64_t max) {
  return AdaptiveConcurrency::make(min, max).value();
}

TEST(Concurrency, AdmitsRequestsWhileFewerThanTheLimitAreInFlight) {
  const auto limiter = Concurrency::make(2).value();
  const auto first = limiter.step({}, kStart, 1);
  EXPECT_EQ(first.outcome, (Outcome{.allowed = true, .remaining = 1}));
  EXPECT_EQ(first.drained_at, kNever);
  const auto second = limiter.step(first.next, kStart, 1);
  EXPECT_EQ(second.outcome, (Outcome{.allowed = true, .remaining = 0}));
  const auto third = limiter.step(second.next, kStart + 24h, 1);
  EXPECT_EQ(third.outcome, (Outcome{.retry_after = 1s, .more_after = 1s})) << "time released a permit";
  EXPECT_EQ(third.next, second.next);
  EXPECT_EQ(limiter.step({}, kStart, 3).outcome.retry_after, base::kForever);
  EXPECT_EQ(limiter.release(limiter.release(second.next, 1), 1), Cell{});
  EXPECT_EQ(limiter.release({}, 1), Cell{}) << "a second release leaves a debt";
}

// Compares the limiter with a list of the requests in flight. Requests arrive and end at random.
TEST(Concurrency, AgreesWithAListOfTheRequestsInFlightForRandomTraffic) {
  const auto seed = new_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    const std::uint64_t limit = 1 + random() % 12;
    const auto limiter = in_flight(limit);
    KeyTable table(64);
    std::list<std::pair<Cost, Permit>> flying;
    const auto total = [&] {
      Cost sum = 0;
      for (const auto& [cost, permit] : flying) sum += cost;
      return sum;
    };
    for (int i = 0; i < 24; ++i) {
      const auto now = kStart + Duration(i);
      const Charge charge{key_of(1), &limiter, 1 + random() % 3};
      Outcome out;
      const bool fits = total() + charge.cost <= limit;
      ASSERT_EQ(table.charge({&charge, 1}, now, {&out, 1}), fits) << "seed " << seed << " round " << round;
      if (fits) flying.emplace_back(charge.cost, Permit(table, charge, now, out.overflow));
      ASSERT_EQ(out.remaining, limit - total());
      if (!flying.empty() && random() % 2 == 0)
        flying.erase(std::next(flying.begin(), static_cast<std::ptrdiff_t>(random() % flying.size())));
      table.sweep(now + 24h, table.stats().slots);
      ASSERT_EQ(table.stats().keys, flying.empty() ? 0 : 1) << "the cell of requests in flight was evicted";
    }
  }
}

TEST(Permit, MovedPermitIsReleasedExactlyOnce) {
  KeyTable table(64);
  const auto limiter = in_flight(1);
  const Charge charge{key_of(1), &limiter};
  Outcome out;
  ASSERT_TRUE(table.charge({&charge, 1}, kStart, {&out, 1}));
  {
    Permit permit(table, charge, kStart, false);
    Permit taken(std::move(permit));
    EXPECT_FALSE(table.peek(charge, kStart).allowed);
    taken.release(kStart, {});
    EXPECT_TRUE(table.charge({&charge, 1}, kStart, {&out, 1}));
  }
  EXPECT_FALSE(table.peek(charge, kStart).allowed) << "the permit of another request was released";
}

TEST(Permit, PermitCountedInTheOverflowCellIsReleasedThere) {
  KeyTable table(16);
  const auto limiter = in_flight(1);
  Outcome out;
  std::uint64_t client = 0;
  Charge charge{};
  do {
    charge = {key_of(client++), &limiter};
    ASSERT_TRUE(table.charge({&charge, 1}, kStart, {&out, 1}));
  } while (!out.overflow);
  EXPECT_FALSE(table.peek({key_of(client), &limiter}, kStart).allowed);
  { const Permit permit(table, charge, kStart, true); }
  EXPECT_TRUE(table.peek({key_of(client), &limiter}, kStart).allowed);
}

// A server that processes `workers` requests at once, each for `work`, and queues all others. Clients send as
// many requests as weir admits, at most `demand` at once.
class Server {
 public:
  Server(AdaptiveConcurrency limiter, std::uint64_t workers, Duration work, std::uint64_t demand)
      : limiter_(limiter), free_at_(workers, kStart), work_(work), demand_(demand) {}

  void run(Duration how_long) {
    for (const auto end = now_ + how_long; now_ < end; now_ += 1ms) {
      while (!flying_.empty() && flying_.front().ends <= now_) finish();
      while (flying_.size() < demand_ && ask()) {
      }
      lowest_ = std::min(lowest_, limit());
    }
  }
  void slow_down(Duration work) { work_ = work; }
  void demand(std::uint64_t demand) { demand_ = demand; }
  void fail(bool yes) { fail_every(yes ? 1 : 0); }
  void fail_every(std::uint64_t nth) { failing_ = nth; }
  [[nodiscard]] std::uint64_t limit() const { return limiter_.limit(cell_, now_); }
  [[nodiscard]] std::uint64_t lowest() const { return lowest_; }
  [[nodiscard]] std::size_t flying() const { return flying_.size(); }

 private:
  struct Request {
    TimePoint began, ends;
  };
  bool ask() {
    const auto s = limiter_.step(cell_, now_, 1);
    if (!s.outcome.allowed) return false;
    cell_ = s.next;
    auto& worker = *std::ranges::min_element(free_at_);
    worker = std::max(worker, now_) + work_;
    flying_.push_back({now_, worker});
    std::ranges::sort(flying_, {}, &Request::ends);
    return true;
  }
  void finish() {
    const auto [began, ends] = flying_.front();
    flying_.pop_front();
    const bool failed = failing_ != 0 && ++ended_ % failing_ == 0;
    cell_ = limiter_.release(cell_, now_, 1, {.latency = ends - began, .failed = failed});
  }

  AdaptiveConcurrency limiter_;
  std::vector<TimePoint> free_at_;
  Duration work_;
  std::uint64_t demand_;
  std::uint64_t failing_ = 0;  // every nth request fails; 0: no request fails
  std::uint64_t ended_ = 0;
  Cell cell_;
  TimePoint now_ = kStart;
  std::deque<Request> flying_;
  std::uint64_t lowest_ = ~std::uint64_t{0};
};

TEST(AdaptiveConcurrency, LimitConvergesToTheParallelismOfTheServer) {
  Server server(adaptive(1, 1'000), 40, 20ms, 5'000);
  server.run(60s);
  EXPECT_GE(server.limit(), 40) << "the server idles";
  EXPECT_LE(server.limit(), 90) << "the queue is longer than the tolerated latency";
}

TEST(AdaptiveConcurrency, LimitFollowsAServerThatSlowsDownAndRecovers) {
  Server server(adaptive(2, 1'000), 40, 20ms, 5'000);
  server.run(60s);
  server.slow_down(100ms);
  server.run(60s);
  EXPECT_GE(server.limit(), 40) << "the limiter did not accept the latency of the slower server";
  EXPECT_LE(server.limit(), 90);
  server.slow_down(20ms);
  server.run(60s);
  EXPECT_GE(server.limit(), 40);
  EXPECT_LE(server.limit(), 200) << "the limit keeps at most the former queue";
}

TEST(AdaptiveConcurrency, LimitStaysBetweenMinAndMax) {
  Server failing(adaptive(7, 50), 100, 5ms, 1'000);
  failing.fail(true);
  failing.run(20s);
  EXPECT_EQ(failing.limit(), 7);
  EXPECT_EQ(failing.lowest(), 7);
  failing.fail(false);
  failing.run(20s);
  EXPECT_EQ(failing.limit(), 50);
}

// A failure has the same effect as the slowest answer: a gradient of ½. An answer lowers the limit by about
// (1 − gradient) / 4. So each failure lowers it by an eighth of a unit.
TEST(AdaptiveConcurrency, FailedRequestLowersTheLimitLikeTheSlowestResponse) {
  const auto limiter = adaptive(1, 10'000);
  auto cell = limiter.step({}, kStart, 20).next;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(limiter.limit(cell, kStart), i == 0 ? 100 : 99);
    cell = limiter.release(cell, kStart, 1, {.failed = true});
  }
  EXPECT_EQ(limiter.limit(cell, kStart), 99);
  cell = limiter.release(cell, kStart, 1, {.failed = true});
  EXPECT_EQ(limiter.limit(cell, kStart), 98);
}

// Every fourth request fails, but the server still has capacity for more requests. So the limit must not fall
// far.
TEST(AdaptiveConcurrency, LimitStaysHighIfOnlySomeRequestsFail) {
  Server server(adaptive(2, 1'000), 40, 20ms, 5'000);
  server.run(20s);
  server.fail_every(4);
  server.run(60s);
  EXPECT_GE(server.limit(), 40) << "failures alone lowered the limit";
}

TEST(AdaptiveConcurrency, LimitOfAHealthyServerIsNotLoweredToMeasureTheServer) {
  Server server(adaptive(1, 200), 100, 10ms, 60);
  server.run(10s);
  const auto before = server.limit();
  EXPECT_GE(before, 60);
  server.run(120s);
  EXPECT_EQ(server.flying(), 60);
  EXPECT_GE(server.limit(), before) << "the limit of a healthy server was lowered to measure it";
}

TEST(AdaptiveConcurrency, LimitGrowsOnlyWhileAtLeastHalfOfItIsInUse) {
  Server server(adaptive(4, 400), 1'000, 10ms, 10);
  server.run(30s);
  EXPECT_LE(server.limit(), 40) << "ten requests in flight do not justify a limit above forty";
}

TEST(AdaptiveConcurrency, AdaptedLimitIsForgottenAfterTenMinutesWithoutTraffic) {
  const auto limiter = adaptive(1, 100);
  auto cell = limiter.step({}, kStart, 1).next;
  EXPECT_EQ(limiter.drained_at(cell), kNever);
  cell = limiter.release(cell, kStart, 1, {.latency = 5ms});
  EXPECT_NE(cell, Cell{});
  const auto forgotten = limiter.drained_at(cell);
  EXPECT_GE(forgotten, kStart + 10min);
  EXPECT_LE(forgotten, kStart + 11min);
  EXPECT_EQ(limiter.step(cell, forgotten, 1).next, limiter.step({}, forgotten, 1).next);
  EXPECT_NE(limiter.step(cell, forgotten - 1us, 1).next, limiter.step({}, forgotten - 1us, 1).next);
}

TEST(AdaptiveConcurrency, ReleaseWithoutAMeasuredLatencyRestoresTheStateBeforeTheAdmission) {
  const auto limiter = adaptive(1, 100);
  const auto cell = limiter.step({}, kStart, 3).next;
  EXPECT_EQ(limiter.release(cell, kStart, 3, {}), Cell{});
}

// The limit must stay within its bounds for any latencies, and the number of requests in flight must stay
// exact.
TEST(AdaptiveConcurrency, NumberOfRequestsInFlightIsExactForAnyLatencies) {
  const auto seed = new_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    const std::uint64_t min = 1 + random() % 20;
    const std::uint64_t max =
        std::min(AdaptiveConcurrency::kMost, min + (random() % 2 == 0 ? random() % 20 : random() % 10'000));
    const auto limiter = adaptive(min, max);
    Cell cell;
    std::uint64_t flying = 0;
    TimePoint now = kStart;
    for (int i = 0; i < 40; ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
      now += Duration(random() % 2'000'000);
      const auto limit = limiter.limit(cell, now);
      ASSERT_GE(limit, min);
      ASSERT_LE(limit, max);
      const auto s = limiter.step(cell, now, 1);
      ASSERT_EQ(s.outcome.allowed, flying < limit);
      ASSERT_EQ(quota_of(Limiter(limiter), s.outcome), limit);
      ASSERT_EQ(s.outcome.remaining, limit - std::min(limit, flying + (s.outcome.allowed ? 1 : 0)));
      if (s.outcome.allowed) ++flying;
      cell = s.next;
      while (flying > 0 && random() % 3 != 0) {
        const auto latency = Duration(random() >> (random() % 63 + 1));
        const Ending endings[] = {
            {}, {.latency = latency}, {.latency = latency, .failed = true}, {.failed = true}};
        cell = limiter.release(cell, now, 1, endings[random() % 4]);
        --flying;
      }
    }
  }
}

}  // namespace
}  // namespace weir::limit
