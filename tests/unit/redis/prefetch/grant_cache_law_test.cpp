// Checks the guarantee of prefetched units. Several weir instances take units, spend these units late, put
// them back and refund them. A single exact limiter must admit all requests that the instances have admitted,
// at the same instants.
//
// There is one key, in a Redis with the real scripts and a clock that the test sets. The clocks of the
// instances drift apart. A request takes time to reach Redis, and its reply takes time to return.
#include "redis/prefetch/grant_cache.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/limit/sliding_log.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Cost;
using limit::Limiter;
using Us = base::Duration;

constexpr limit::Key kKey{1, 2};

// An exact limiter in memory. For a sliding log, it keeps all entries.
class Exact {
 public:
  explicit Exact(const Limiter& limiter) : limiter_(limiter) {}

  limit::Outcome charge(base::TimePoint now, Cost cost) {
    if (const auto* log = std::get_if<limit::SlidingLog>(&limiter_)) return enter(*log, now, cost);
    const auto step = limit::step(limiter_, cell_, now, cost);
    if (step.outcome.allowed) cell_ = step.next;
    return step.outcome;
  }

  [[nodiscard]] std::uint64_t newest() const { return entries_.empty() ? 0 : entries_.back().mark; }
  [[nodiscard]] Cost total() const {
    Cost sum = 0;
    for (const auto& entry : entries_) sum += entry.cost;
    return sum;
  }
  void walk(auto visit) const {
    for (const auto& entry : entries_)
      if (entry.cost != 0 && !visit(entry)) return;
  }

 private:
  limit::Outcome enter(const limit::SlidingLog& log, base::TimePoint now, Cost cost) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.mark + log.marks() <= log.mark_of(now); });
    const auto answer = log.ask(*this, now, cost);
    if (!answer.outcome.allowed) return answer.outcome;
    if (entries_.empty() || entries_.back().mark != answer.mark) entries_.push_back({answer.mark, 0});
    entries_.back().cost += cost;
    return answer.outcome;
  }

  const Limiter& limiter_;
  limit::Cell cell_{};
  std::vector<limit::LogEntry> entries_;
};

struct Admission {
  base::TimePoint at;
  Cost cost;
  bool came_to_nothing = false;
};

struct LawCase {
  const char* name;
  Limiter limiter;
  Us step;  // mean time between two requests
};

class World {
 public:
  World(TimedScripts& scripts, const Limiter& limiter, std::uint64_t seed, std::size_t weirs)
      : random_(seed), limiter_(limiter), redis_(scripts) {
    redis_.forget_all();
    for (std::size_t i = 0; i < weirs; ++i)
      weirs_.push_back({.cache = std::make_unique<GrantCache>(64, 200ms), .offset = Us(below(1'000'000))});
  }

  void run(std::size_t requests, Us mean) {
    for (std::size_t i = 0; i < requests; ++i) {
      now_ += Us(below(static_cast<std::uint64_t>(2 * mean.count())));
      if (below(200) == 0) now_ += Us(below(600'000));  // sometimes there are no requests for a while
      auto& weir = weirs_[below(hot_ ? 1 : weirs_.size())];
      if (below(100) == 0) hot_ = !hot_;
      request(weir);
      if (below(20) == 0) sweep(weirs_[below(weirs_.size())]);
    }
    hear_of_failures();
    for (auto& weir : weirs_) {
      std::vector<Refund> back;
      weir.cache->give_up(local(weir), back, 1000);
      refund(back);
    }
  }

  [[nodiscard]] GrantStats stats() const {
    GrantStats sum;
    for (const auto& weir : weirs_) {
      const auto& stats = weir.cache->stats();
      sum.taken += stats.taken;
      sum.spent += stats.spent;
      sum.put_back += stats.put_back;
      sum.returned += stats.returned;
      sum.lost += stats.lost;
    }
    return sum;
  }
  [[nodiscard]] Cost admitted() const {
    Cost sum = 0;
    for (const auto& one : admitted_) sum += one.came_to_nothing ? 0 : one.cost;
    return sum;
  }
  // Charges single units until Redis refuses one. Returns how many units Redis admitted.
  Cost drain() {
    for (Cost rest = 0;; ++rest)
      if (!ask(weirs_[0], line(1)).outcome.allowed) return rest;
  }

  // Passes all admitted requests in order to one exact limiter. That limiter must admit all of them.
  void check_law() const {
    auto admitted = admitted_;
    std::erase_if(admitted, [](const auto& one) { return one.came_to_nothing; });
    std::stable_sort(admitted.begin(), admitted.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    Exact exact(limiter_);
    for (std::size_t i = 0; i < admitted.size(); ++i)
      ASSERT_TRUE(exact.charge(admitted[i].at, admitted[i].cost).allowed)
          << "admission " << i << " of " << admitted.size();
  }

 private:
  struct Weir {
    std::unique_ptr<GrantCache> cache;
    Us offset;  // this instance's steady clock minus the test's time
  };

  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }

  // Returns the time that the instance's clock shows. The clock is slow by one part in 2000.
  [[nodiscard]] GrantCache::Time local(const Weir& weir) const {
    const auto since = now_.time_since_epoch();
    return GrantCache::Time(since - since / 2000 + weir.offset);
  }

  // The result of a round trip to Redis. During the round trip nothing else happens.
  struct Answer {
    limit::Outcome outcome;
    RoundTrip trip;
  };
  Answer ask(const Weir& weir, const limit::Charge& line) {
    const auto sent = local(weir);
    now_ += Us(below(800));
    redis_.set_clock(now_);
    const auto reply = redis_.charge({{line}});
    std::array<limit::Outcome, 1> outcomes;
    base::TimePoint at;
    EXPECT_EQ(read_outcomes(reply, {{line}}, outcomes, at), ReplyReading::Answer);
    now_ += Us(below(800));
    return {outcomes[0], {sent, local(weir), at, outcomes[0].slots_begin}};
  }

  [[nodiscard]] limit::Charge line(Cost cost) const {
    return {.key = kKey, .limiter = &limiter_, .cost = cost, .lease = limit::quota(limiter_) / 4};
  }

  void request(Weir& weir) {
    const auto line = this->line(below(10) == 0 ? 3 : 1);
    limit::Outcome outcome;
    base::TimePoint charged_at = now_;
    if (!weir.cache->spend(line, local(weir), outcome)) {
      weir.cache->note_trip(line, local(weir));
      auto answer = ask(weir, line);
      // Refunds the charge, as if another node of the cluster had refused the same request.
      if (answer.outcome.allowed && below(8) == 0) {
        refund({refund_of(line, answer.trip.charged_at, answer.outcome)});
        answer.outcome.allowed = false;
      }
      weir.cache->learn(line, answer.outcome);
      outcome = answer.outcome;
      charged_at = answer.trip.charged_at;
    }
    if (outcome.allowed) settle(weir, line, outcome, charged_at);
    if (const auto units = weir.cache->wanted(line, local(weir))) take(weir, line, units);
  }

  // Makes one in ten admitted requests fail. The instance learns of the failure much later, after many other
  // events.
  void settle(Weir& weir, const limit::Charge& line, const limit::Outcome& outcome,
              base::TimePoint charged_at) {
    const bool fails = below(10) == 0;
    admitted_.push_back({outcome.prefetched ? now_ : charged_at, line.cost, fails});
    if (fails) failures_.push_back({&weir, line, outcome, charged_at});
    if (below(40) == 0) hear_of_failures();
  }

  void hear_of_failures() {
    std::vector<Refund> back;
    for (const auto& [weir, line, outcome, charged_at] : std::exchange(failures_, {}))
      if (outcome.prefetched)
        weir->cache->put_back(line, outcome, back);
      else
        back.push_back(refund_of(line, charged_at, outcome));
    refund(back);
  }

  void take(Weir& weir, limit::Charge line, Cost units) {
    line.cost = units;
    if (below(20) == 0) return weir.cache->failed(line, local(weir));
    const auto answer = ask(weir, line);
    std::vector<Refund> back;
    weir.cache->arrived(line, answer.trip, answer.outcome, back);
    refund(back);
  }

  void sweep(Weir& weir) {
    std::vector<Refund> back;
    weir.cache->sweep(local(weir), back, 1000);
    refund(back);
  }

  void refund(const std::vector<Refund>& back) {
    now_ += Us(below(800));
    redis_.set_clock(now_);
    for (const auto& line : back) redis_.refund(line);
  }

  std::mt19937_64 random_;
  const Limiter& limiter_;
  TimedScripts& redis_;
  std::vector<Weir> weirs_;
  std::vector<Admission> admitted_;
  struct Failure {
    Weir* weir;
    limit::Charge line;
    limit::Outcome outcome;
    base::TimePoint charged_at;
  };
  std::vector<Failure> failures_;  // failures that the instances have not learned of yet
  base::TimePoint now_{Us(1'700'000'000'123'456)};
  bool hot_ = false;
};

std::vector<LawCase> cases() {
  using namespace limit;
  const auto rate = [](std::uint64_t count, Us period) { return Rate{count, period}; };
  return {{"bucket, never empty", TokenBucket::make(rate(2000, 1s), 2000).value(), 1000us},
          {"bucket, overloaded", TokenBucket::make(rate(300, 1s), 200).value(), 1500us},
          {"bucket of odd numbers", TokenBucket::make(rate(700, 3s), 64).value(), 4000us},
          {"bucket, nearly even", TokenBucket::make(rate(1000, 1s), 100).value(), 900us},
          {"gcra", Gcra::make(rate(1000, 1s), 60).value(), 1200us},
          {"fixed", FixedWindow::make(rate(300, 500ms)).value(), 1200us},
          {"weighted", SlidingWindow::make(rate(400, 700ms)).value(), 1100us},
          {"buckets", SlidingLog::make(rate(500, 1s), 5).value(), 1200us}};
}

class GrantCacheLaws : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  const std::uint64_t seed_ = [] {
    const std::uint64_t seed = std::random_device{}();
    std::cout << "seed " << seed << '\n';
    return seed;
  }();
};

TEST_F(GrantCacheLaws, AdmittedRequestsNeverExceedTheLimitForRandomTraffic) {
  for (const auto& [name, limiter, mean] : cases()) {
    SCOPED_TRACE(name);
    GrantStats all;
    for (std::uint64_t round = 0; round < 20; ++round) {
      World world(scripts_, limiter, seed_ + round, 1 + round % 4);
      world.run(2500, mean);
      world.check_law();
      if (HasFatalFailure()) return;
      const auto stats = world.stats();
      EXPECT_EQ(stats.held(), 0U);
      all.taken += stats.taken;
      all.spent += stats.spent;
      all.put_back += stats.put_back;
      all.returned += stats.returned;
    }
    EXPECT_GT(all.spent, 1000U) << "too few units were spent for the test";
    EXPECT_GT(all.put_back, 50U);
    EXPECT_GT(all.returned, 50U);
  }
}

// Uses a bucket that hardly refills during the test, so nearly all units must become usable again through
// refunds. Many instances hold units, become idle, and refund units whose time slots lie between the slots of
// other instances. They also refund single units, which makes more gaps (free time slots) than a state can
// store.
TEST_F(GrantCacheLaws, RefundedUnitsCanBeUsedByOtherInstances) {
  constexpr Cost kCapacity = 3000;
  const Limiter limiter = limit::TokenBucket::make({kCapacity, 24h}, kCapacity).value();
  for (std::uint64_t round = 0; round < 20; ++round) {
    World world(scripts_, limiter, seed_ + round, 1 + round % 4);
    world.run(1500, 10ms);
    const auto left = kCapacity - world.admitted() - world.stats().lost;
    const auto rest = world.drain();
    EXPECT_GE(rest + kCapacity / 50, left);
    EXPECT_LE(rest, left + 2) << "and one or two units were refilled";
    EXPECT_EQ(world.stats().lost, 0U);
    world.check_law();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weir::redis
