// Tests failures of Redis: it is unreachable, slow, restarting, loading, read-only or out of memory. Each
// failure has its own error, and no charge takes longer than the timeout. impostor_test.cpp tests servers
// that are not Redis.
#include "redis/scripts/bill.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using ::testing::HasSubstr;

class RedisFailure : public ::testing::Test {
 protected:
  limit::Limiter ten_an_hour_ = token_bucket({10, 1h}, 10);
  std::vector<limit::Charge> bill_ = {{key(1), &ten_an_hour_}};

  // Charges requests until the store is down. Returns the errors of the charges.
  std::vector<net::ErrorCode> charge_until_down(Worker& worker) {
    std::vector<net::ErrorCode> errors;
    while (worker.store.state() == StoreState::Up && errors.size() < 100)
      errors.push_back(worker.charge(bill_).error);
    return errors;
  }
};

TEST_F(RedisFailure, CallsFailAtOnceWhileRedisIsUnreachable) {
  RedisSettings settings;
  settings.address = {"127.0.0.1", free_port(), ""};
  Worker worker(settings);
  const auto answer = worker.charge(bill_);
  EXPECT_EQ(answer.error, StoreError::Away);
  EXPECT_LT(answer.took, 300ms);
  ASSERT_TRUE(worker.turn_until([&] { return !worker.log.empty(); }));
  EXPECT_THAT(worker.log[0], HasSubstr("is down"));
  EXPECT_THAT(worker.log[0], HasSubstr("refused"));
  // Further failed attempts with the same reason are not logged.
  worker.loop.restart();
  worker.loop.run_for(100ms);
  EXPECT_EQ(worker.log.size(), 1U);
}

TEST_F(RedisFailure, StoreReconnectsToARedisThatWasKilledAndStartedAgain) {
  Server server;
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  server.kill();
  const auto error = worker.charge(bill_).error;
  EXPECT_TRUE(error == StoreError::ConnectionLost || error == StoreError::Away) << error.message();
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.state() != StoreState::Up; }));
  EXPECT_EQ(worker.charge(bill_).error, StoreError::Away);
  server.start();
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  EXPECT_EQ(worker.store.stats().connects.load(), 2U);
  EXPECT_THAT(worker.log,
              ::testing::ElementsAre(HasSubstr("is up"), HasSubstr("is down"), HasSubstr("is up")));
}

TEST_F(RedisFailure, CallToAnUnresponsiveRedisTimesOutAndItsLateReplyIsDiscarded) {
  Server server;
  auto tuning = Worker::quick();
  tuning.failures_to_open = 100;  // high, so that the connection stays open and late replies arrive
  Worker worker(Worker::settings_for(server, 30ms), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  server.freeze();
  for (int i = 0; i < 3; ++i) {
    const auto answer = worker.charge(bill_);
    EXPECT_EQ(answer.error, StoreError::Timeout);
    EXPECT_GE(answer.took, 30ms);
    EXPECT_LT(answer.took, 300ms);  // the timeout, plus time for a busy machine
  }
  server.thaw();
  // Redis makes the three charges after their timeouts. Its late replies, in which 8, 7 and 6 units remain,
  // must not be taken for the reply to the next request.
  std::optional<Answer> next;
  ASSERT_TRUE(worker.turn_until([&] {
    next = worker.charge(bill_);
    return !next->error;
  }));
  EXPECT_LE(next->outcomes[0].remaining, 5U);
  const auto other = worker.charge({{key(2), &ten_an_hour_, 4}});
  EXPECT_EQ(other.outcomes[0].remaining, 6U);
  EXPECT_EQ(worker.store.stats().connects.load(), 1U);
  EXPECT_GE(worker.store.stats().timeouts.load(), 3U);
}

// SCRIPT LOAD must be sent immediately, without waiting for the next command.
TEST_F(RedisFailure, FlushedScriptIsLoadedAgainEvenIfItsCallHasTimedOut) {
  Server server;
  auto settings = Worker::settings_for(server, 30ms);
  settings.lease_time = 1h;  // long, because weir closes a connection that gets no reply for lease_time / 3
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  server.ask({"SCRIPT", "FLUSH"});
  reset_command_counts(server);
  server.freeze();
  EXPECT_EQ(worker.charge(bill_).error, StoreError::Timeout);
  server.thaw();
  EXPECT_TRUE(worker.turn_until([&] { return !server.info("commandstats", "cmdstat_script|load").empty(); }));
}

TEST_F(RedisFailure, CircuitBreakerOpensAndTheStoreReconnectsByItself) {
  Server server;
  auto tuning = Worker::quick();
  tuning.open_timeout = 50ms;
  Worker worker(Worker::settings_for(server, 20ms), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  server.freeze();
  EXPECT_EQ(charge_until_down(worker), std::vector<net::ErrorCode>(5, StoreError::Timeout));
  std::chrono::steady_clock::duration took{};
  for (int i = 0; i < 1000; ++i) {
    const auto answer = worker.charge(bill_);
    ASSERT_EQ(answer.error, StoreError::BreakerOpen);
    took += answer.took;
  }
  EXPECT_LT(took, 1s);  // 1000 timeouts would take twenty seconds
  EXPECT_EQ(worker.store.stats().opened.load(), 1U);
  server.thaw();
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
  EXPECT_THAT(server.info("commandstats", "cmdstat_evalsha"), ::testing::StartsWith("calls="));
  EXPECT_LE(std::stoi(server.info("commandstats", "cmdstat_evalsha").substr(6)),
            8);  // 5 charges that timed out, 1 new charge, and the store's test charge on 2 connections
}

TEST_F(RedisFailure, CallsThatTimeOutTogetherAreCountedAsOneFailure) {
  Server server;
  Worker worker(Worker::settings_for(server, 30ms));
  ASSERT_TRUE(worker.turn_until_up());
  server.freeze();
  const auto stall = [&] {
    std::array<Answer, 20> answers;
    for (auto& answer : answers) worker.begin(bill_, answer);
    EXPECT_TRUE(worker.turn_until([&] { return std::ranges::all_of(answers, &Answer::done); }));
    for (const auto& answer : answers) EXPECT_TRUE(answer.error);
  };
  for (int i = 0; i < 4; ++i) stall();
  EXPECT_EQ(worker.store.stats().opened.load(), 0U);
  stall();
  EXPECT_EQ(worker.store.stats().opened.load(), 1U);
}

TEST_F(RedisFailure, ReportsAWrongOrMissingPassword) {
  Server server({"--requirepass", "secret"});
  auto settings = Worker::settings_for(server);
  settings.password = "wrong";
  {
    Worker worker(settings);
    ASSERT_TRUE(worker.turn_until([&] { return !worker.log.empty(); }));
    EXPECT_THAT(worker.log[0], HasSubstr("not_allowed, WRONGPASS"));
  }
  settings.password = "";
  {
    Worker worker(settings);
    ASSERT_TRUE(worker.turn_until([&] { return !worker.log.empty(); }));
    EXPECT_THAT(worker.log[0], HasSubstr("not_allowed, NOAUTH"));
  }
  settings.password = "secret";
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
}

TEST_F(RedisFailure, RedisUserWithTheDocumentedRightsSuffices) {
  Server server;
  server.ask({"ACL",     "SETUSER",       "weir",     "on",       ">secret",
              "~weir:*", "resetchannels", "-@all",    "+evalsha", "+script|load",
              "+mget",   "+set",          "+del",     "+time",    "+client|setname",
              "+lrange", "+rpush",        "+lset",    "+lindex",  "+llen",
              "+ltrim",  "+lrem",         "+pexpire", "+exists"});  // the last two rows: commands for logs
  auto settings = Worker::settings_for(server);
  settings.user = "weir";
  settings.password = "secret";
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up()) << worker.store.last_error();
  const auto answer = worker.charge({{key(1), &ten_an_hour_}, {key(2), &ten_an_hour_}});
  EXPECT_FALSE(answer.error) << worker.store.last_error();
  const limit::Limiter log = limit::SlidingLog::make({2, 2ms}).value();
  Answer logged;
  for (int i = 0; i < 10; ++i) {  // the sliding log fills up and drains in turn
    logged = worker.charge({{key(3), &log}});
    ASSERT_FALSE(logged.error) << worker.store.last_error();
  }
  worker.store.refund({key(3), &log}, logged.now);
  EXPECT_FALSE(worker.charge({{key(3), &log}}).error);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U) << worker.store.last_error();
  server.ask({"ACL", "SETUSER", "weir", "-set"});
  EXPECT_EQ(worker.charge(bill_).error, StoreError::CommandDenied) << worker.store.last_error();
}

// The charge by which the store tests a connection must use the same commands as charges for requests.
// Otherwise the test charge would succeed, and five more charges would fail before the store is down again.
TEST_F(RedisFailure, StoreStaysDownWhileItsTestChargeFails) {
  Server server;
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  server.ask({"ACL", "SETUSER", "default", "-evalsha"});
  EXPECT_EQ(charge_until_down(worker), std::vector<net::ErrorCode>(5, StoreError::NotAllowed));
  const auto end = std::chrono::steady_clock::now() + 500ms;
  ASSERT_TRUE(worker.turn_until([&] {
    EXPECT_NE(worker.store.state(), StoreState::Up);
    return std::chrono::steady_clock::now() > end;
  }));
  EXPECT_THAT(worker.log,
              ::testing::ElementsAre(HasSubstr("is up"), HasSubstr("is down: breaker_open, NOPERM")));
  server.ask({"ACL", "SETUSER", "default", "+evalsha"});
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
}

TEST_F(RedisFailure, MissingRightFailsOnlyTheRequestsThatNeedIt) {
  Server server;
  server.ask({"ACL", "SETUSER", "default", "-exists"});
  // Declared before the worker, because this limiter must outlive the worker.
  const limit::Limiter place = limit::Concurrency::make(1).value();
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  const std::vector<limit::Charge> denied = {{key(2), &place}};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(worker.charge(denied).error, StoreError::CommandDenied);
  EXPECT_EQ(worker.store.state(), StoreState::Up);
  // Requests that share a call with the denied request succeed, because weir sends them again.
  for (std::uint64_t left = 8; left > 0; --left) {
    const std::vector<limit::Charge> fresh = {{key(left + 9), &ten_an_hour_}};
    Answer one, other, another;
    worker.begin(bill_, one);
    worker.begin(denied, other);
    worker.begin(fresh, another);
    ASSERT_TRUE(worker.turn_until([&] { return one.done && other.done && another.done; }));
    EXPECT_FALSE(one.error || another.error) << worker.store.last_error();
    EXPECT_EQ(one.outcomes[0].remaining, left + 1);
    EXPECT_EQ(other.error, StoreError::CommandDenied);
  }
  EXPECT_EQ(worker.store.stats().opened.load(), 0U);
  EXPECT_THAT(worker.log,
              ::testing::ElementsAre(HasSubstr("is up"), HasSubstr("fails at concurrency: ERR ")));
  EXPECT_THAT(worker.log.back(), HasSubstr("docs/distributed.md"));
  server.ask({"ACL", "SETUSER", "default", "+exists"});
  EXPECT_TRUE(worker.charge(denied).outcomes.at(0).allowed);
  EXPECT_FALSE(worker.charge(denied).outcomes.at(0).allowed);
}

// weir has no right to read a key. It must not treat the key as absent, or as a key with a state of another
// kind.
TEST_F(RedisFailure, KeyThatWeirMayNotReadDoesNotCountAsUnused) {
  Server server;
  server.ask({"ACL", "SETUSER", "default", "-exists", "-del"});
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  const limit::Limiter place = limit::Concurrency::make(1).value();
  const limit::Limiter log = limit::SlidingLog::make({1, 1h}).value();
  for (const auto* limiter : {&place, &log})
    EXPECT_EQ(worker.charge({{key(3), limiter}}).error, StoreError::CommandDenied);
  server.ask({"ACL", "SETUSER", "default", "+exists"});
  const auto taken = worker.charge({{key(4), &place}, {key(5), &log}});
  ASSERT_FALSE(taken.error);
  worker.store.release({key(4), &place});
  worker.store.refund({key(5), &log}, taken.now);
  EXPECT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds_lost.load() == 2; }));
  EXPECT_EQ(std::ranges::count_if(
                worker.log, [](const auto& line) { return line.find("fails at refunding") != line.npos; }),
            0);  // weir logs such a line at most every ten seconds, and an earlier error was logged
}

TEST_F(RedisFailure, ReplicaIsNotUsedUntilItIsAMasterAgain) {
  Server server;
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  ASSERT_EQ(server.ask({"REPLICAOF", "127.0.0.1", std::to_string(free_port())}).text, "OK");
  EXPECT_EQ(charge_until_down(worker), std::vector<net::ErrorCode>(5, StoreError::ReadOnly));
  ASSERT_TRUE(
      worker.turn_until([&] { return worker.store.last_error().starts_with("READONLY You can't write"); }));
  EXPECT_EQ(worker.charge(bill_).error, StoreError::BreakerOpen);
  server.ask({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
}

TEST_F(RedisFailure, NothingIsChargedIfRedisHasNoFreeMemory) {
  Server server;
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  server.ask({"CONFIG", "SET", "maxmemory", "1"});
  const std::vector<limit::Charge> two = {{key(1), &ten_an_hour_}, {key(2), &ten_an_hour_}};
  EXPECT_EQ(worker.charge(two).error, StoreError::OutOfMemory);
  server.ask({"CONFIG", "SET", "maxmemory", "0"});
  const auto answer = worker.charge(two);
  ASSERT_FALSE(answer.error);
  EXPECT_EQ(answer.outcomes[0].remaining, 9U);
  EXPECT_EQ(answer.outcomes[1].remaining, 9U);
}

TEST_F(RedisFailure, KeyWithAnInvalidStateCountsAsUnused) {
  Server server;
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until_up());
  server.ask({"LPUSH", key_name("weir", key(1)), "a"});
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  server.ask({"SET", key_name("weir", key(1)), "nonsense"});
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  server.ask({"DEL", key_name("weir", key(1))});
  server.ask({"SADD", key_name("weir", key(1)), "a"});
  worker.store.refund(bill_[0], {});
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 9U);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U);
}

TEST_F(RedisFailure, StoreWaitsWhileRedisLoadsItsData) {
  Server server({"--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"});
  const std::string pad(2000, 'x');
  for (int i = 0; i < 300; ++i) server.ask({"SET", "pad" + std::to_string(i), pad + std::to_string(i)});
  ASSERT_EQ(server.ask({"SAVE"}).text, "OK");
  server.kill();
  server.start();
  Worker worker(Worker::settings_for(server));
  ASSERT_TRUE(worker.turn_until([&] { return !worker.log.empty(); }));
  EXPECT_THAT(worker.log[0], HasSubstr("is down: loading, LOADING"));
  EXPECT_EQ(worker.charge(bill_).error, StoreError::Away);
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
}

}  // namespace
}  // namespace weir::redis
