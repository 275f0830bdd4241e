// Tests several bills (a bill: all charges of one request) in one call of charge.lua. Redis must decide each
// bill as if the bills came one by one.
#include "redis/connection/pipeline.hpp"
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"
#include "unit/redis/store/store_fixture.hpp"

namespace weir::redis {
namespace {

using limit::Charge;
using limit::Outcome;

class BatchedCharges : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  base::TimePoint now_{base::Duration(1'800'000'000'000'000)};

  std::uint64_t permits_ = 0;

  std::vector<BillRequest> demands_of(const std::vector<std::vector<Charge>>& bills) {
    std::vector<BillRequest> demands;
    for (const auto& bill : bills) demands.push_back({bill, {1, ++permits_, 10s}});
    return demands;
  }
  static std::size_t count(std::span<const BillRequest> bills) {
    std::size_t lines = 0;
    for (const auto& bill : bills) lines += bill.lines.size();
    return lines;
  }

  // Charges all bills in one call. Returns the outcomes of all charges, bill by bill.
  std::vector<Outcome> together(std::span<const BillRequest> bills) {
    scripts_.set_clock(now_);
    const auto reply = scripts_.charge(bills);
    std::vector<Outcome> outcomes(count(bills));
    BillPosition place{0, bills.size(), 0, outcomes.size()};
    for (const auto& bill : bills) {
      const auto& lines = bill.lines;
      base::TimePoint then;
      const auto decoded = std::span(outcomes).subspan(place.first_line, lines.size());
      EXPECT_EQ(read_outcomes(reply, place, lines, decoded, then), ReplyReading::Answer);
      EXPECT_EQ(then, now_);
      ++place.bill;
      place.first_line += lines.size();
    }
    return outcomes;
  }
  std::vector<Outcome> apart(std::span<const BillRequest> bills) {
    std::vector<Outcome> outcomes;
    for (const auto& bill : bills) {
      const auto of_one = together({&bill, 1});
      outcomes.insert(outcomes.end(), of_one.begin(), of_one.end());
    }
    return outcomes;
  }
};

// Two sets of keys get the same requests. Requests for the first set share calls; each request for the second
// set has its own call. Limiters and costs are random; one limiter is a concurrency limit. The requests share
// a few keys, and some charges belong to shadow rules.
TEST_F(BatchedCharges, GiveTheSameOutcomesAsSeparateCalls) {
  limit::Dice dice(limit::new_seed());
  unsigned refused = 0, admitted = 0;
  for (int round = 0; round < 150; ++round) {
    scripts_.forget_all();
    std::vector<limit::Case> rules;
    while (rules.size() < 4)
      if (auto any = dice.limiter(); is_known(any.limiter)) rules.push_back(std::move(any));
    const limit::Limiter held = limit::Concurrency::make(dice.between(1, 40)).value();
    for (int step = 0; step < 12; ++step) {
      std::vector<std::vector<Charge>> here(dice.between(1, kMostBills));
      for (auto& bill : here) {
        if (dice.one_in(2)) bill.push_back({{9, 9}, &held, dice.between(1, 3), 0, !dice.one_in(5)});
        for (std::uint64_t i = 0; i < rules.size(); ++i)
          if (dice.one_in(2) || (bill.empty() && i == rules.size() - 1))
            bill.push_back({limit::key_of(i), &rules[i].limiter, dice.cost(rules[i]), 0, !dice.one_in(5)});
      }
      auto there = here;
      for (auto& bill : there)
        for (auto& line : bill) line.key.hi ^= 1;
      const auto ours = together(demands_of(here)), theirs = apart(demands_of(there));
      ASSERT_EQ(ours, theirs);
      for (const auto& outcome : ours) ++(outcome.allowed ? admitted : refused);
      now_ += std::min<base::Duration>(dice.pause(rules[0]), std::chrono::hours(24));
    }
  }
  EXPECT_GT(admitted, 1000U);
  EXPECT_GT(refused, 1000U);
}

TEST_F(BatchedCharges, AreMadeInTheOrderOfTheRequests) {
  const auto three = token_bucket({1, 1h}, 3), one = token_bucket({1, 1h}, 1);
  const limit::Key shared{1, 1}, own{2, 2};
  const std::vector<std::vector<Charge>> bills{
      {{shared, &three, 2}},
      {{shared, &three, 2}},               // refused, because only one unit is left
      {{own, &one}, {shared, &three, 2}},  // refused, so `own` is not charged
      {{own, &one}, {shared, &three}},     // admitted, because `own` was not charged
      {{shared, &three}},
  };
  const auto outcomes = together(demands_of(bills));
  const auto allowed = [&](std::size_t i) { return outcomes[i].allowed; };
  EXPECT_TRUE(allowed(0));
  EXPECT_FALSE(allowed(1));
  EXPECT_TRUE(allowed(2));
  EXPECT_FALSE(allowed(3));
  EXPECT_TRUE(allowed(4));
  EXPECT_TRUE(allowed(5));
  EXPECT_FALSE(allowed(6));
}

// In each call the script checks only once whether any key is a list or a sorted set. Here the check finds
// none, and then the first request turns a string into a list or a sorted set. The second request of the call
// must find it.
TEST_F(BatchedCharges, UseListsAndSetsThatAnEarlierRequestOfTheSameCallCreated) {
  // The most entries and the most permits that a state may have as a string. With one more, the state becomes
  // a list (entries) or a sorted set (permits).
  constexpr std::uint64_t kEntries = 64, kPermits = 32;
  const limit::Limiter log = limit::SlidingLog::make({kEntries + 1, 1h}).value();
  const limit::Limiter places = limit::Concurrency::make(kPermits + 1).value();
  for (const auto& [limiter, full] : {std::pair(&log, kEntries), std::pair(&places, kPermits)}) {
    const Charge line{{full, 1}, limiter}, fresh{{full, 2}, limiter};
    const std::vector<std::vector<Charge>> one{{line}}, both{{fresh, line}, {line}};
    for (std::uint64_t i = 0; i < full; ++i, now_ += 1us)
      ASSERT_TRUE(together(demands_of(one))[0].allowed) << i;
    const auto outcomes = together(demands_of(both));
    EXPECT_TRUE(outcomes[0].allowed);
    EXPECT_TRUE(outcomes[1].allowed);
    EXPECT_FALSE(outcomes[2].allowed) << full;
    EXPECT_FALSE(together(demands_of(one))[0].allowed) << full;
  }
}

class BatchingStore : public ::testing::Test {
 protected:
  Server server_;
  limit::Limiter ten_ = token_bucket({1, 24h}, 10);
  const std::vector<Charge> bill_{{{7, 7}, &ten_}};

  [[nodiscard]] std::string evals() const { return server_.info("commandstats", "cmdstat_evalsha"); }
};

TEST_F(BatchingStore, RequestsOfOneEventLoopIterationAreSentInOneCall) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  reset_command_counts(server_);
  std::array<Answer, kMostBills + 1> answers;
  for (auto& answer : answers) worker.begin(bill_, answer);
  ASSERT_TRUE(worker.turn_until([&] { return answers.back().done; }));
  EXPECT_TRUE(evals().starts_with("calls=2,")) << evals();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].error);
    EXPECT_EQ(answers[i].outcomes[0].allowed, i < 10) << i;
  }
}

TEST_F(BatchingStore, NumberOfChargesInACallIsBounded) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  reset_command_counts(server_);
  std::vector<Charge> large;
  for (std::uint64_t i = 0; i < limit::kMaxCharges; ++i) large.push_back({{i, 1}, &ten_});
  std::array<Answer, 5> answers;
  for (auto& answer : answers) worker.begin(large, answer);
  ASSERT_TRUE(worker.turn_until([&] { return answers.back().done; }));
  EXPECT_TRUE(evals().starts_with("calls=3,")) << evals();  // of 64, 64 and 32 charges
  for (const auto& answer : answers) EXPECT_TRUE(!answer.error && answer.outcomes.back().allowed);
}

// While many calls are unanswered, weir holds requests back until they can share a call. Requests that fill a
// call are sent immediately.
TEST_F(BatchingStore, RequestsWaitToShareACallWhileManyCallsAreUnanswered) {
  Worker worker(Worker::settings_for(server_, 20s));
  ASSERT_TRUE(worker.turn_until_up());
  reset_command_counts(server_);
  server_.freeze();
  std::array<Answer, Pipeline::kBusyCalls + kMostBills + 5> answers;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    worker.begin(bill_, answers[i]);
    const auto writes = worker.store.stats().writes.load();
    worker.loop.restart();
    worker.loop.poll();
    const bool full = i == Pipeline::kBusyCalls + kMostBills - 1;
    const bool leaves = i < Pipeline::kBusyCalls || full;
    EXPECT_EQ(worker.store.stats().writes.load() - writes, leaves ? 1U : 0U) << i;
  }
  server_.thaw();
  ASSERT_TRUE(worker.turn_until([&] { return answers.back().done; }));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].error);
    EXPECT_EQ(answers[i].outcomes[0].allowed, i < 10) << i;
  }
  const auto calls = "calls=" + std::to_string(Pipeline::kBusyCalls + 2) + ",";
  EXPECT_TRUE(evals().starts_with(calls)) << evals();
}

TEST_F(BatchingStore, AllRequestsOfACallAreSentAgainIfTheScriptWasFlushed) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  server_.ask({"SCRIPT", "FLUSH"});
  std::array<Answer, 3> answers;
  for (auto& answer : answers) worker.begin(bill_, answer);
  ASSERT_TRUE(worker.turn_until([&] { return answers.back().done; }));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].error);
    EXPECT_EQ(answers[i].outcomes[0].remaining, 9 - i);
  }
}

// The reply to a call with several requests comes too late. weir must then refund each request that Redis has
// charged.
TEST_F(BatchingStore, EachRequestOfACallIsRefundedIfItsReplyIsLate) {
  auto tuning = Worker::quick();
  tuning.failures_to_open = 100;
  Worker worker(Worker::settings_for(server_, 30ms), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  worker.charge(bill_);
  server_.freeze();
  // Nine of the bucket's ten units are left. So Redis charges nine of these requests and refuses three.
  std::array<Answer, 12> late;
  for (auto& answer : late) worker.begin(bill_, answer);
  ASSERT_TRUE(worker.turn_until([&] { return late.back().done; }));
  for (const auto& answer : late) EXPECT_EQ(answer.error, StoreError::Timeout);
  server_.thaw();
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds == 9; }));
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 8U);
}

TEST_F(BatchingStore, RequestThatStillWaitsWhenTheStoreStopsIsNotCharged) {
  Answer left;
  {
    Worker worker(Worker::settings_for(server_));
    ASSERT_TRUE(worker.turn_until_up());
    worker.begin(bill_, left);
    worker.store.stop();
    ASSERT_TRUE(worker.turn_until([&] { return left.done; }));
  }
  EXPECT_EQ(left.error, StoreError::Stopped);
  Worker next(Worker::settings_for(server_));
  ASSERT_TRUE(next.turn_until_up());
  EXPECT_EQ(next.charge(bill_).outcomes[0].remaining, 9U);
}

}  // namespace
}  // namespace weir::redis
