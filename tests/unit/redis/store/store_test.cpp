// Tests the guarantees of the store on a real Redis.
#include "redis/scripts/bill.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <boost/asio/detached.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  Server server_;
  limit::Limiter ten_an_hour_ = token_bucket({10, 1h}, 10);
  limit::Limiter one_an_hour_ = gcra({1, 1h}, 0);
  limit::Limiter queue_ = leaky_bucket({1, 1h}, 3);

  Reply get(std::uint64_t n) { return server_.ask({"GET", key_name("weir", key(n))}); }
  std::int64_t ttl(std::uint64_t n) { return server_.ask({"PTTL", key_name("weir", key(n))}).numbers.at(0); }
};

TEST_F(StoreTest, RefusedRequestChargesNoRule) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  ASSERT_TRUE(worker.charge({{key(2), &one_an_hour_}}).outcomes[0].allowed);
  const auto answer = worker.charge({{key(1), &ten_an_hour_}, {key(2), &one_an_hour_}, {key(3), &queue_}});
  ASSERT_FALSE(answer.error);
  EXPECT_TRUE(answer.outcomes[0].allowed);
  EXPECT_FALSE(answer.outcomes[1].allowed);
  EXPECT_TRUE(answer.outcomes[2].allowed);
  EXPECT_EQ(get(1).kind, Reply::Kind::Nil);
  EXPECT_EQ(get(3).kind, Reply::Kind::Nil);
}

TEST_F(StoreTest, ShadowRuleIsChargedOnlyIfTheEnforcedRulesAdmit) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const limit::Charge enforced{key(1), &one_an_hour_};
  const limit::Charge shadow{key(2), &one_an_hour_, 1, 1, false};
  const limit::Charge other{key(3), &ten_an_hour_, 1, 2, false};
  const auto both = worker.charge({enforced, shadow});
  EXPECT_TRUE(both.outcomes[0].allowed && both.outcomes[1].allowed);
  EXPECT_EQ(get(2).kind, Reply::Kind::Text);
  // The enforced rule refuses, so the shadow rule of the same request is not charged.
  EXPECT_FALSE(worker.charge({enforced, other}).outcomes[0].allowed);
  EXPECT_EQ(get(3).kind, Reply::Kind::Nil);
  // A shadow rule that would refuse does not affect the other rules of the request.
  const auto free = worker.charge({{key(4), &one_an_hour_}, shadow});
  EXPECT_TRUE(free.outcomes[0].allowed);
  EXPECT_FALSE(free.outcomes[1].allowed);
  EXPECT_EQ(get(4).kind, Reply::Kind::Text);
}

TEST_F(StoreTest, CostAboveTheBurstIsRefusedWithAnInfiniteWait) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const auto century = token_bucket({1, base::Duration(36'525LL * 86'400 * 1'000'000)}, 1);
  const auto answer = worker.charge({{key(1), &century, limit::kMaxCost}});
  ASSERT_FALSE(answer.error);
  EXPECT_FALSE(answer.outcomes[0].allowed);
  EXPECT_EQ(answer.outcomes[0].retry_after, base::kForever);
  EXPECT_TRUE(worker.charge({{key(1), &century, 1}}).outcomes[0].allowed);
}

TEST_F(StoreTest, KeyExpiresWhenItsLimitHasRefilled) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const auto answer = worker.charge({{key(1), &ten_an_hour_}});
  const auto reset =
      std::chrono::duration_cast<std::chrono::milliseconds>(answer.outcomes[0].reset_after).count();
  EXPECT_LE(ttl(1), reset + 2);
  EXPECT_GT(ttl(1), reset - 10'000);
  const auto quick = token_bucket({1'000'000, 1s}, 1);
  EXPECT_TRUE(worker.charge({{key(2), &quick}}).outcomes[0].allowed);
  EXPECT_TRUE(worker.turn_until([&] { return get(2).kind == Reply::Kind::Nil; }));
}

TEST_F(StoreTest, RefundRestoresTheStateBeforeTheCharge) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const std::vector<limit::Charge> bill = {{key(1), &one_an_hour_}, {key(2), &ten_an_hour_, 10}};
  const auto first = worker.charge(bill);
  ASSERT_TRUE(first.outcomes[0].allowed && first.outcomes[1].allowed);
  for (std::size_t i = 0; i < bill.size(); ++i) worker.store.refund(bill[i], first.now, first.outcomes[i]);
  const auto second = worker.charge(bill);
  EXPECT_TRUE(second.outcomes[0].allowed);
  EXPECT_TRUE(second.outcomes[1].allowed);
  worker.store.refund(bill[1], second.now);
  EXPECT_EQ(worker.charge({bill[1]}).outcomes[0].remaining, 0U);
}

TEST_F(StoreTest, OnlyTheLastPromisedDepartureOfAQueueIsRefunded) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  const limit::Charge line{key(1), &queue_};
  const auto first = worker.charge({line});
  const auto second = worker.charge({line});
  const auto third = worker.charge({line});
  ASSERT_TRUE(third.outcomes[0].allowed);
  const auto state = get(1).text;
  // Redis has promised a later departure, so the refund of this earlier departure changes nothing.
  worker.store.refund(line, second.now + second.outcomes[0].delay);
  const auto third_again = third.now + third.outcomes[0].delay;
  worker.store.refund(line, third_again);
  const auto fourth = worker.charge({line});
  EXPECT_EQ(fourth.now + fourth.outcomes[0].delay, third_again);
  EXPECT_EQ(get(1).text, state);
  EXPECT_EQ(first.outcomes[0].delay.count(), 0);
}

TEST_F(StoreTest, CommandsOfOneEventLoopIterationAreSentInOneWrite) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  reset_command_counts(server_);
  std::vector<std::vector<limit::Charge>> bills;
  std::vector<Answer> answers(50);
  for (std::uint64_t i = 0; i < answers.size(); ++i)
    bills.push_back({{key(i), &ten_an_hour_}, {key(100 + i), &queue_}});
  const auto reads = std::stoull(server_.info("stats", "total_reads_processed"));
  const auto writes = worker.store.stats().writes.load();
  for (std::size_t i = 0; i < answers.size(); ++i) worker.begin(bills[i], answers[i]);
  ASSERT_TRUE(worker.turn_until([&] {
    return std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.done && !a.error; });
  }));
  EXPECT_EQ(worker.store.stats().writes.load(), writes + 1);
  // Since `reads`, Redis has read at most 3 times: the commands of the worker at once, the INFO below, and
  // perhaps the end of the connection that asked for `reads`.
  EXPECT_LE(std::stoull(server_.info("stats", "total_reads_processed")), reads + 3);
  EXPECT_THAT(server_.info("commandstats", "cmdstat_evalsha"), ::testing::StartsWith("calls=4,"));
}

TEST_F(StoreTest, FlushedScriptIsLoadedAgainOnce) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  server_.ask({"SCRIPT", "FLUSH"});
  const std::vector<limit::Charge> bill = {{key(1), &ten_an_hour_}};
  std::vector<Answer> answers(20);
  for (auto& answer : answers) worker.begin(bill, answer);
  worker.store.refund(bill[0], {});
  ASSERT_TRUE(worker.turn_until(
      [&] { return std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.done; }); }));
  int admitted = 0;
  for (const auto& answer : answers) {
    EXPECT_FALSE(answer.error) << answer.error.message();
    admitted += answer.outcomes[0].allowed;
  }
  EXPECT_GE(admitted, 10);
  EXPECT_LE(admitted, 11);  // the limit, 10, and one more if Redis makes the refund between the charges
  EXPECT_EQ(worker.store.stats().script_loads.load(), 2U);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U);
}

TEST_F(StoreTest, TwoWorkersAdmitExactlyTheLimit) {
  const auto hundred = token_bucket({100, 24h}, 100);
  std::atomic<int> admitted{0};
  const auto work = [&] {
    Worker worker(Worker::settings_for(server_, 10s));
    ASSERT_TRUE(worker.turn_until_up());
    for (int i = 0; i < 20; ++i) {
      const std::vector<limit::Charge> bill = {{key(1), &hundred}};
      std::vector<Answer> answers(16);
      for (auto& answer : answers) worker.begin(bill, answer);
      ASSERT_TRUE(worker.turn_until([&] {
        return std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.done; });
      }));
      for (const auto& answer : answers) admitted += !answer.error && answer.outcomes[0].allowed;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(admitted.load(), 100);
}

TEST_F(StoreTest, StoreConnectsByTcpAndUsesTheConfiguredDatabase) {
  const auto port = free_port();
  server_.ask({"CONFIG", "SET", "bind", "127.0.0.1"});
  ASSERT_EQ(server_.ask({"CONFIG", "SET", "port", std::to_string(port)}).text, "OK");
  auto settings = parse_redis_url("redis://127.0.0.1:" + std::to_string(port) + "/3").value();
  settings.timeout = 1s;
  settings.prefix = "edge";
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge({{key(1), &ten_an_hour_}}).error);
  EXPECT_THAT(server_.info("keyspace", "db3"), ::testing::StartsWith("keys="));
  EXPECT_EQ(server_.info("keyspace", "db0"), "");
}

TEST_F(StoreTest, NumberOfPendingCommandsIsBounded) {
  auto tuning = Worker::quick();
  tuning.max_pending = 4;
  Worker worker(Worker::settings_for(server_), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  const std::vector<limit::Charge> bill = {{key(1), &ten_an_hour_}};
  std::vector<Answer> answers(6);
  for (auto& answer : answers) worker.begin(bill, answer);
  ASSERT_TRUE(worker.turn_until(
      [&] { return std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.done; }); }));
  EXPECT_FALSE(answers[3].error);
  EXPECT_EQ(answers[4].error, StoreError::Overloaded);
  EXPECT_EQ(worker.store.stats().failures.load(), 2U);
}

TEST_F(StoreTest, PendingCallsFailWhenTheStoreStops) {
  Worker worker(Worker::settings_for(server_));
  ASSERT_TRUE(worker.turn_until_up());
  Answer answer;
  const std::vector<limit::Charge> bill = {{key(1), &ten_an_hour_}};
  server_.freeze();
  worker.begin(bill, answer);
  worker.turn_until([&] { return worker.store.stats().calls.load() == 1; });
  worker.store.stop();
  ASSERT_TRUE(worker.turn_until([&] { return answer.done; }));
  EXPECT_EQ(answer.error, StoreError::Stopped);
  EXPECT_EQ(worker.charge(bill).error, StoreError::Stopped);
}

net::Task<void> ask_and_note(Store& store, std::vector<limit::Charge> bill, bool& went_on) {
  std::vector<limit::Outcome> outcomes(bill.size());
  base::TimePoint now;
  limit::ChargeSet unanswered = 0;
  [[maybe_unused]] const auto ec = co_await store.charge(bill, outcomes, now, unanswered);
  went_on = true;
}

// Destroys a worker without another iteration of its event loop. Nothing may leak, and no coroutine may be
// resumed; AddressSanitizer checks both.
TEST_F(StoreTest, StoreCanBeDestroyedWithoutAnotherEventLoopIteration) {
  bool went_on = false;
  {
    net::asio::io_context loop(1);
    Store store(loop.get_executor(), Worker::settings_for(server_));
    store.start();
    while (store.state() != StoreState::Up) loop.run_one();
    server_.freeze();
    net::spawn(loop.get_executor(), ask_and_note(store, {{key(1), &ten_an_hour_}}, went_on),
               [](const std::exception_ptr&) {});
    while (store.stats().writes.load() == 0) loop.run_one();
  }
  EXPECT_FALSE(went_on);
  server_.thaw();
}

}  // namespace
}  // namespace weir::redis
