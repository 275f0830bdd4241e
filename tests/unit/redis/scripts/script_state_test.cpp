// Tests the states that the scripts store: their memory, their time to live, and the effect of a changed
// rule.
#include "redis/scripts/bill.hpp"
#include "unit/limit/random_case.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using limit::FixedWindow;
using limit::SlidingLog;
using limit::SlidingWindow;
using limit::SteppedBucket;

class ScriptState : public ::testing::Test {
 protected:
  Server server_;
  const limit::Key key_ = limit::key_of(1);
  const std::string name_ = key_name("weir", key_);

  // One limiter of each kind except concurrency. Each allows 10 units an hour or 10 units a day.
  std::vector<limit::Limiter> each_ = {
      token_bucket({10, 1h}, 10),
      gcra({10, 1h}, 9),
      leaky_bucket({10, 1h}, 9),
      SteppedBucket::make({10, 1h}, 10).value(),
      FixedWindow::make({10, 1h}).value(),
      FixedWindow::make(10, FixedWindow::Align::Day, limit::Dice(1).calendar()).value(),
      SlidingWindow::make({10, 1h}).value(),
      SlidingLog::make({10, 1h}, 6).value(),
      SlidingLog::make({10, 1h}).value()};

  // The limiters in each_, and a concurrency limit. Tests of times use only each_, because a concurrency
  // limit has no rate.
  std::vector<limit::Limiter> every_ = [this] {
    auto all = each_;
    all.push_back(limit::Concurrency::make(10).value());
    return all;
  }();
  Worker worker_{settings_for(server_)};

  void SetUp() override { ASSERT_TRUE(worker_.turn_until_up()); }
  static RedisSettings settings_for(const Server& server) {
    auto settings = Worker::settings_for(server);
    settings.lease_time = 1h;  // long, so that weir sends no renewal during a test
    return settings;
  }

  limit::Outcome charge(const limit::Limiter& limiter, limit::Cost cost = 1) {
    const auto answer = worker_.charge({{key_, &limiter, cost}});
    EXPECT_FALSE(answer.error) << limit::describe(limiter) << ": " << worker_.store.last_error();
    return answer.outcomes[0];
  }
};

TEST_F(ScriptState, KeyWithAStateOfAnotherAlgorithmCountsAsUnused) {
  for (const auto& before : every_) {
    for (const auto& after : every_) {
      // Skips pairs of limiters that store their state in the same form.
      if (limit::gcra_core(before) != nullptr && limit::gcra_core(after) != nullptr) continue;
      if (before.index() == after.index()) continue;
      server_.ask({"FLUSHDB"});
      const auto fresh = charge(after, 3).remaining;
      server_.ask({"FLUSHDB"});
      charge(before);
      charge(before);
      EXPECT_EQ(charge(after, 3).remaining, fresh)
          << limit::describe(before) << ", " << limit::describe(after);
    }
  }
}

// Returns true if a state of this kind can have this length in bytes. `kind`: the first byte of the state.
bool is_length_of(char kind, std::size_t length) {
  switch (kind) {
    case 2:
      return length == 17;
    case 3:
    case 5:
      return length == 24;
    case 6:
      return length % 11 == 1 && length > 12;
    case 7:
      return length % 27 == 22;
    default:
      return false;
  }
}

TEST_F(ScriptState, KeyWithAStateInAnUnknownFormatCountsAsUnused) {
  const auto somebody = [&](std::vector<std::string> command, const limit::Limiter& limiter) {
    const auto command_text = ::testing::PrintToString(command);
    server_.ask({"FLUSHDB"});
    const auto fresh = charge(limiter, 3).remaining;
    server_.ask({"FLUSHDB"});
    server_.ask(std::move(command));
    EXPECT_EQ(charge(limiter, 3).remaining, fresh) << limit::describe(limiter) << " after " << command_text;
  };
  for (const auto& limiter : every_) {
    if (limit::gcra_core(limiter) != nullptr) continue;  // any bytes of the right length are a valid state
    for (std::size_t length = 1; length <= 60; ++length)
      somebody({"SET", name_, std::string(length, 'x')}, limiter);
    for (char kind = 1; kind <= 9; ++kind)
      for (std::size_t length = 1; length <= 60; ++length)
        if (!is_length_of(kind, length))
          somebody({"SET", name_, kind + std::string(length - 1, 'x')}, limiter);
    somebody({"RPUSH", name_, "somebody", "else"}, limiter);
    somebody({"RPUSH", name_, std::string(15, 'x')}, limiter);
    somebody({"RPUSH", name_, std::string(15, 'x'), "else"}, limiter);
    somebody({"HSET", name_, "somebody", "else"}, limiter);
  }
}

// The script must treat this state as lost. If it raised an error, the other requests of the same call would
// fail, too.
TEST_F(ScriptState, SlidingLogWhoseHeadHasATooSmallTotalCountsAsUnused) {
  const auto pair = [](char paid) { return std::string(7, '\0') + paid + std::string(7, '\0'); };
  for (const auto& limiter : each_) {
    if (!std::holds_alternative<SlidingLog>(limiter)) continue;
    server_.ask({"FLUSHDB"});
    server_.ask({"RPUSH", name_, pair(7), pair(5), pair(4)});
    EXPECT_TRUE(charge(limiter).allowed) << limit::describe(limiter);
  }
}

TEST_F(ScriptState, RefundDoesNotChangeTheStateOfAnotherAlgorithm) {
  for (const auto& before : every_) {
    for (const auto& after : every_) {
      if (limit::gcra_core(before) != nullptr && limit::gcra_core(after) != nullptr) continue;
      if (before.index() == after.index()) continue;
      server_.ask({"FLUSHDB"});
      const auto remaining = charge(before).remaining;
      worker_.store.refund({key_, &after, 1}, worker_.charge({{limit::key_of(2), &after}}).now);
      EXPECT_EQ(charge(before).remaining, remaining - 1)
          << limit::describe(before) << ", " << limit::describe(after);
    }
  }
  EXPECT_EQ(worker_.store.stats().refunds_lost.load(), 0U);
}

// Redis has lost the state. The refund of an earlier charge must change nothing, because it would subtract
// units of later charges.
TEST_F(ScriptState, ChargeThatRedisHasLostIsNotRefundedToAWindow) {
  for (const auto& limiter : each_) {
    if (limit::gcra_core(limiter) != nullptr || std::holds_alternative<SteppedBucket>(limiter)) continue;
    SCOPED_TRACE(limit::describe(limiter));
    limit::Charge lost{key_, &limiter, 4}, others{key_, &limiter, 3};
    if (std::holds_alternative<SlidingLog>(limiter)) lost.lease = others.lease = 1;
    const auto before = worker_.charge({lost}).now;
    server_.ask({"FLUSHDB"});
    const auto after = worker_.charge({others}).now;
    ASSERT_GT(after, before);
    worker_.store.refund(lost, before);
    EXPECT_EQ(charge(limiter).remaining, 6);
    worker_.store.settle(lost, before, 1);
    EXPECT_EQ(charge(limiter).remaining, 5);
    worker_.store.settle(lost, before, 6);
    EXPECT_LE(charge(limiter).remaining, 2) << "at least two units are used";
    worker_.store.refund(others, after);
    EXPECT_GE(charge(limiter).remaining, 1);
    server_.ask({"FLUSHDB"});
  }
  EXPECT_EQ(worker_.store.stats().refunds_lost.load(), 0U);
}

TEST_F(ScriptState, RefundOfAllUnitsDeletesTheKey) {
  for (const auto& limiter : each_) {
    const auto answer = worker_.charge({{key_, &limiter, 4}});
    const auto ttl = server_.ask({"PTTL", name_}).numbers.at(0);
    const auto reset = std::chrono::duration_cast<std::chrono::milliseconds>(answer.outcomes[0].reset_after);
    EXPECT_LE(ttl, reset.count() + 2) << limit::describe(limiter);
    EXPECT_GE(ttl, reset.count() - 10'000) << limit::describe(limiter);
    worker_.store.refund({key_, &limiter, 4}, answer.now + answer.outcomes[0].delay);
    worker_.charge({{limit::key_of(2), &limiter}});  // when Redis answers this charge, it has made the refund
    EXPECT_EQ(server_.ask({"EXISTS", name_}).numbers.at(0), 0) << limit::describe(limiter);
    server_.ask({"FLUSHDB"});
  }
}

// After a reduction of the burst, the bucket has more spent units than the new burst. They stay spent: the
// bucket must first refill them.
TEST_F(ScriptState, BucketWithAReducedBurstFirstRefillsTheUnitsSpentBeyondTheNewBurst) {
  const limit::Limiter wide = SteppedBucket::make({10, 1h}, 100).value();
  const limit::Limiter cut = SteppedBucket::make({10, 1h}, 20).value();
  charge(wide, 100);
  const auto outcome = charge(cut);
  EXPECT_FALSE(outcome.allowed);
  EXPECT_GT(outcome.retry_after, 8h);
  EXPECT_LE(outcome.retry_after, 9h);
}

TEST_F(ScriptState, BucketedWindowHasOneEntryForEachBucket) {
  const limit::Limiter years = SlidingLog::make({10, 1h * 24 * 3'000}, 6).value();
  for (int i = 0; i < 5; ++i) charge(years);
  EXPECT_EQ(server_.ask({"STRLEN", name_}).numbers.at(0), 1 + 2 * 11);
}

// Charges one key 10,000 times, which makes the largest possible sliding log.
TEST_F(ScriptState, SlidingLogTakes18BytesForEachEntryAndIsSearchedInFewSteps) {
  const limit::Limiter log = SlidingLog::make({SlidingLog::kMostExact, 24h}).value();
  const std::vector<limit::Charge> bill = {{key_, &log}};
  for (std::uint64_t sent = 1; sent < SlidingLog::kMostExact; ++sent)
    ASSERT_FALSE(worker_.charge(bill).error);

  // Half of the entries have expired, so the log has room for half of the limit. The script must find the
  // last expired entry by binary search, and not read all entries.
  const auto looks = [&] {
    const auto said = server_.ask({"INFO", "commandstats"}).text;
    const auto at = said.find("cmdstat_lindex:calls=");
    return at == std::string::npos ? 0 : std::stoi(said.substr(at + 21));
  };
  const auto before = looks();
  const std::vector<limit::Charge> dear = {{key_, &log, SlidingLog::kMostExact / 2}};
  EXPECT_FALSE(worker_.charge(dear).outcomes[0].allowed);
  EXPECT_GT(looks() - before, 0);
  EXPECT_LT(looks() - before, 20);

  EXPECT_TRUE(charge(log).allowed);
  EXPECT_FALSE(charge(log).allowed);
  // Charges within one microsecond, or in one call, share an entry.
  const auto entries = server_.ask({"LLEN", name_}).numbers.at(0) - 1;
  EXPECT_GT(entries, 5'000);
  const auto memory = server_.ask({"MEMORY", "USAGE", name_, "SAMPLES", "0"}).numbers.at(0);
  std::cout << entries << " entries take " << memory << " bytes\n";
  EXPECT_LE(memory, 18 * entries + 1'000);
}

}  // namespace
}  // namespace weir::redis
