// Tests concurrency limits in Redis: permits that expire unless they are renewed.
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include "weir/redis/permit.hpp"

#include <map>
#include <optional>

namespace weir::redis {
namespace {

limit::Limiter at_once(std::uint64_t limit) {
  return limit::Concurrency::make(limit).value();
}

// A model of one key: a list of permits, each with the time at which the permit expires.
struct Places {
  struct Place {
    limit::Cost cost;
    base::TimePoint until;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Place> places;

  [[nodiscard]] limit::Cell cell(base::TimePoint now) {
    std::erase_if(places, [&](const auto& place) { return place.second.until <= now; });
    limit::Cell cell;
    for (const auto& [name, place] : places) cell.words[0] += place.cost;
    return cell;
  }
};

class PermitScript : public ::testing::Test {
 protected:
  Server server_;
  TimedScripts scripts_{server_};
  const std::uint64_t seed_ = limit::new_seed();
  limit::Dice dice_{seed_};
  base::TimePoint now_{1'800'000'000s};
  const limit::Limiter ten_ = at_once(10);
  const limit::Charge line_{limit::key_of(1), &ten_};
  Places model_;
  std::vector<Refund> held_;  // permits that were not released; some may have expired
  std::uint64_t serial_ = 0;
  int admitted_ = 0, refused_ = 0, expired_ = 0, in_sets_ = 0;

  void charge() {
    auto line = line_;
    line.cost = dice_.one_in(3) ? dice_.between(1, 11) : 1;
    const PermitId hold{dice_.between(1, 3), ++serial_, dice_.one_in(2) ? 10s : 3s};
    const auto reply = scripts_.charge({&line, 1}, hold);
    limit::Outcome outcome;
    base::TimePoint then;
    ASSERT_EQ(read_outcomes(reply, {&line, 1}, {&outcome, 1}, then), ReplyReading::Answer);
    const auto expected = limit::step(ten_, model_.cell(now_), now_, line.cost).outcome;
    ASSERT_EQ(outcome, expected) << "cost " << line.cost;
    ++(outcome.allowed ? admitted_ : refused_);
    if (!outcome.allowed) return;
    model_.places[{hold.holder, hold.serial}] = {line.cost, now_ + hold.lease};
    held_.push_back({line, {}, 0, hold});
  }
  // Checks that the key lives as long as its permits. If it expired earlier, Redis would admit too many
  // requests.
  void expect_life() {
    const auto expires = scripts_.expiry_of(line_.key);
    for (const auto& [name, place] : model_.places)
      EXPECT_TRUE(expires >= place.until || place.until <= now_);
  }
  // Renews or releases one permit, in Redis and in the model.
  void renew_or_release() {
    if (held_.empty()) return;
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(dice_.between(0, held_.size() - 1));
    auto line = *at;
    const auto name = std::pair(line.hold.holder, line.hold.serial);
    const bool renews = dice_.one_in(2);
    line.actual = renews ? line.charge.cost : 0;
    scripts_.refund(line);
    (void)model_.cell(now_);
    expired_ += renews && !model_.places.contains(name);
    if (renews) {
      model_.places[name] = {line.charge.cost, now_ + line.hold.lease};
    } else {
      model_.places.erase(name);
      held_.erase(at);
    }
  }
};

// A renewal must restore a permit that has expired or that Redis has lost, even beyond the limit, because the
// permit's request is still in progress.
TEST_F(PermitScript, PermitsAreCountedAsInASimpleModel) {
  for (int i = 0; i < 6'000; ++i) {
    scripts_.set_clock(now_);
    if (dice_.one_in(200)) {
      in_sets_ += server_.ask({"TYPE", key_name("w", line_.key)}).text == "zset";
      scripts_.forget_all();
      model_.places.clear();
    }
    if (dice_.one_in(2))
      charge();
    else
      renew_or_release();
    expect_life();
    ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", request " << i;
    now_ += base::Duration(dice_.between(0, dice_.one_in(10) ? 4'000'000 : 400'000));
  }
  EXPECT_GT(admitted_, 500);
  EXPECT_GT(refused_, 500);
  EXPECT_GT(expired_, 100);
  EXPECT_GT(in_sets_, 2);
}

TEST_F(PermitScript, KeyIsDeletedWithItsLastPermit) {
  const PermitId hold{1, 1, 10s};
  scripts_.set_clock(now_);
  scripts_.charge({&line_, 1}, hold);
  scripts_.refund({line_, {}, 0, hold});
  EXPECT_EQ(server_.ask({"EXISTS", key_name("w", line_.key)}).numbers.at(0), 0);
}

class RedisPermits : public ::testing::Test {
 protected:
  static constexpr auto kBrief = 300ms;  // a short lease, so that renewals come soon

  Server server_;
  const limit::Limiter two_ = at_once(2);
  const std::vector<limit::Charge> bill_ = {{limit::key_of(1), &two_}};
  const std::string name_ = key_name("weir", limit::key_of(1));

  [[nodiscard]] RedisSettings settings(base::Duration lease, base::Duration timeout = 1s) const {
    auto settings = Worker::settings_for(server_, timeout);
    settings.lease_time = lease;
    return settings;
  }
  double held() {
    const auto total = server_.ask({"EVAL",
                                    "local s = redis.call('MGET', KEYS[1])[1] "
                                    "if s then return (struct.unpack('<I7', s, 2)) end "
                                    "return -(redis.call('ZSCORE', KEYS[1], '') or 0)",
                                    "1", name_});
    return static_cast<double>(total.numbers.at(0));
  }
  std::uint64_t calls() {
    const auto evalsha_stats = server_.info("commandstats", "cmdstat_evalsha");
    return evalsha_stats.empty() ? 0 : std::stoull(evalsha_stats.substr(evalsha_stats.find("calls=") + 6));
  }
  // Returns the time at which the last permit expires; 0 if there is none.
  double expiry() {
    const auto last =
        server_.ask({"EVAL",
                     "local s = redis.call('MGET', KEYS[1])[1] "
                     "if s then return (select(3, struct.unpack('<I7I7I7', s, 2))) end "
                     "return tonumber(redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0)",
                     "1", name_});
    return static_cast<double>(last.numbers.at(0));
  }
};

TEST_F(RedisPermits, AreCountedAcrossAllWorkersUntilReleased) {
  Worker one(settings(1h)), other(settings(1h));
  ASSERT_TRUE(one.turn_until_up() && other.turn_until_up());
  EXPECT_EQ(one.charge(bill_).outcomes[0].remaining, 1U);
  EXPECT_EQ(other.charge(bill_).outcomes[0].remaining, 0U);
  const auto refused = one.charge(bill_).outcomes[0];
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 1s);
  { const Permit permit(other.store, bill_[0]); }
  EXPECT_TRUE(other.turn_until([&] { return held() == 1; }));
  EXPECT_TRUE(one.charge(bill_).outcomes[0].allowed);
}

TEST_F(RedisPermits, AreTakenOnlyIfAllRulesOfTheRequestAdmit) {
  Worker worker(settings(1h));
  ASSERT_TRUE(worker.turn_until_up());
  const auto one_an_hour = gcra({1, 1h}, 0);
  const std::vector<limit::Charge> both = {bill_[0], {limit::key_of(2), &one_an_hour, 1, 1}};
  EXPECT_TRUE(worker.charge(both).outcomes[1].allowed);
  EXPECT_FALSE(worker.charge(both).outcomes[1].allowed);
  EXPECT_EQ(held(), 1);
}

TEST_F(RedisPermits, AreRenewedWhileTheRequestLasts) {
  Worker worker(settings(kBrief));
  ASSERT_TRUE(worker.turn_until_up());
  ASSERT_TRUE(worker.charge(bill_).outcomes[0].allowed);
  const auto first = expiry();
  // Waits until the permit has been renewed for one second, which is longer than three leases.
  EXPECT_TRUE(worker.turn_until([&] { return expiry() > first + 1e6; }));
  EXPECT_EQ(held(), 1);
}

TEST_F(RedisPermits, AreRestoredIfRedisHasLostThem) {
  Worker worker(settings(kBrief));
  ASSERT_TRUE(worker.turn_until_up());
  worker.charge(bill_);
  worker.charge(bill_);
  server_.ask({"FLUSHALL"});
  EXPECT_TRUE(worker.turn_until([&] { return held() == 2; }));
  server_.kill();
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.state() != StoreState::Up; }));
  worker.store.hold(bill_[0]);  // as if a request had been admitted while Redis was away
  server_.start();
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_TRUE(worker.turn_until([&] { return held() == 3; }));
}

// The renewal fails because Redis has lost the script. Usually weir sends such a renewal again. It must not
// do so here, because the permit has been released in the meantime.
TEST_F(RedisPermits, AreNotRestoredAfterTheirRelease) {
  Worker worker(settings(1500ms));
  ASSERT_TRUE(worker.turn_until_up());
  ASSERT_TRUE(worker.charge(bill_).outcomes[0].allowed);
  server_.ask({"SCRIPT", "FLUSH"});
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds.load() == 1; }));
  worker.loop.poll_one();  // sends the renewal
  server_.ask({"PING"});   // the reply comes after Redis has received the renewal
  ASSERT_EQ(held(), 1);
  server_.ask({"SCRIPT", "LOAD", std::string(refund_script())});
  worker.store.release(bill_[0]);
  // Redis answers this charge after it has handled the renewal and the release.
  EXPECT_TRUE(worker.charge({{limit::key_of(2), &two_}}).outcomes[0].allowed);
  EXPECT_EQ(held(), 0);
}

TEST_F(RedisPermits, ExpireWithoutRenewal) {
  auto frozen = std::make_unique<Worker>(settings(kBrief));
  ASSERT_TRUE(frozen->turn_until_up());
  frozen->charge(bill_);
  frozen->charge(bill_);  // from here on, the event loop of `frozen` does not run, as after a crash
  Worker other(settings(1h));
  ASSERT_TRUE(other.turn_until_up());
  EXPECT_TRUE(other.turn_until([&] { return other.charge(bill_).outcomes[0].allowed; }));
}

TEST_F(RedisPermits, AreReleasedWhenTheStoreStops) {
  Worker worker(settings(1h));
  ASSERT_TRUE(worker.turn_until_up());
  worker.charge(bill_);
  worker.charge(bill_);
  ASSERT_EQ(held(), 2);
  worker.store.stop();
  EXPECT_TRUE(worker.turn_until([&] { return held() == 0; }));
}

TEST_F(RedisPermits, AreReleasedAfterALateReply) {
  auto tuning = Worker::quick();
  tuning.failures_to_open = 100;  // high, so that the connection stays open
  Worker worker(settings(1h, 30ms), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  server_.freeze();
  EXPECT_EQ(worker.charge(bill_).error, StoreError::Timeout);
  server_.thaw();
  EXPECT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds.load() == 1; }));
  EXPECT_TRUE(worker.turn_until([&] { return held() == 0; }));
}

// The charges of several requests share a call. Each request must see the permits of earlier requests, and
// each permit can be released separately.
TEST_F(RedisPermits, PermitsOfEarlierRequestsInTheSameCallAreCounted) {
  const limit::Limiter three = at_once(3);
  const std::vector<limit::Charge> bill = {{limit::key_of(1), &three}};
  Worker worker(settings(1h));
  ASSERT_TRUE(worker.turn_until_up());
  reset_command_counts(server_);
  std::array<Answer, 10> answers;
  for (auto& answer : answers) worker.begin(bill, answer);
  ASSERT_TRUE(worker.turn_until([&] { return answers.back().done; }));
  EXPECT_TRUE(server_.info("commandstats", "cmdstat_evalsha").starts_with("calls=1,"));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_FALSE(answers[i].error);
    EXPECT_EQ(answers[i].outcomes[0].allowed, i < 3) << i;
    EXPECT_EQ(answers[i].outcomes[0].remaining, i < 3 ? 2 - i : 0) << i;
  }
  for (int left = 2; left >= 0; --left) {
    worker.store.release(bill[0]);
    EXPECT_TRUE(worker.turn_until([&] { return held() == left; })) << left;
  }
}

// A call fails after the script has stored the permit of its first request. weir charges that request again
// with another permit ID. With the same ID, the permit would be counted twice and released only once.
TEST_F(RedisPermits, PermitIsCountedOnceIfItsCallFailsMidwayAndIsRepeated) {
  const auto many = at_once(100);
  const limit::Limiter log = limit::SlidingLog::make({1, 1h}).value();
  const std::vector<limit::Charge> bill = {{limit::key_of(1), &many}}, fresh = {{limit::key_of(2), &log}};
  Worker worker(settings(1h));
  ASSERT_TRUE(worker.turn_until_up());
  // A key with more than 32 permits is a sorted set. In a sorted set, the script stores the permits of each
  // bill before it checks the next bill. So the permit of `bill` is stored before the call fails at `fresh`.
  for (int i = 0; i < 40; ++i) worker.charge(bill);
  server_.ask({"ACL", "SETUSER", "default", "-lrange"});
  Answer one, other;
  worker.begin(bill, one);
  worker.begin(fresh, other);
  ASSERT_TRUE(worker.turn_until([&] { return one.done && other.done; }));
  EXPECT_FALSE(one.error || other.error) << "a new log does not fail";
  EXPECT_EQ(held(), 42) << "the permit counts until it expires";
  EXPECT_EQ(server_.ask({"ZCARD", name_}).numbers.at(0), 1 + 42);
}

TEST_F(RedisPermits, AreReleasedAfterALateReplyToSeveralRequests) {
  auto tuning = Worker::quick();
  tuning.failures_to_open = 100;
  Worker worker(settings(1h, 30ms), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  server_.freeze();
  std::array<Answer, 4> late;
  for (auto& answer : late) worker.begin(bill_, answer);
  ASSERT_TRUE(worker.turn_until([&] { return late.back().done; }));
  server_.thaw();
  EXPECT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds.load() == 2; }));
  EXPECT_TRUE(worker.turn_until([&] { return held() == 0; }));
  EXPECT_TRUE(worker.charge(bill_).outcomes[0].allowed);
}

// One call must renew all permits of a worker.
TEST_F(RedisPermits, AreAllRenewedInOneCall) {
  const auto many = at_once(1'000);
  Worker worker(settings(kBrief));
  ASSERT_TRUE(worker.turn_until_up());
  const std::vector<limit::Charge> bill = {{limit::key_of(1), &many}};
  for (int i = 0; i < 200; ++i) worker.charge(bill);
  reset_command_counts(server_);
  const auto first = expiry();
  EXPECT_TRUE(worker.turn_until([&] { return expiry() > first + 5e5; }));
  EXPECT_LE(calls(), 8U);
  EXPECT_EQ(held(), 200);
}

// Permits that are released in one iteration of the event loop must share one call. That call is sent before
// the charges of the same iteration.
TEST_F(RedisPermits, ReleasesOfOneEventLoopIterationShareACall) {
  Worker worker(settings(1h));
  ASSERT_TRUE(worker.turn_until_up());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker.charge(bill_).outcomes[0].allowed);
  reset_command_counts(server_);
  worker.store.release(bill_[0]);
  worker.store.release(bill_[0]);
  EXPECT_EQ(worker.charge(bill_).outcomes[0].remaining, 1U);
  EXPECT_EQ(calls(), 2U);
}

// The number of keys with permits is greater than the number of commands that may be unanswered.
TEST_F(RedisPermits, AreRenewedAndReleasedForManyKeysWithFewPendingCommands) {
  auto tuning = Worker::quick();
  tuning.max_pending = 4;
  constexpr std::uint64_t kKeys = 2'000;  // the number of keys; a renewal call has room for only 256 keys
  const auto one = at_once(1);
  Worker worker(settings(kBrief), tuning);
  ASSERT_TRUE(worker.turn_until_up());
  for (std::uint64_t i = 0; i < kKeys; ++i)
    ASSERT_TRUE(worker.charge({{limit::key_of(i), &one}}).outcomes[0].allowed);
  const auto count = [&] { return server_.ask({"DBSIZE"}).numbers.at(0); };
  EXPECT_GE(count(), static_cast<std::int64_t>(kKeys));
  const auto renewed = worker.store.stats().refunds.load() + 3 * kKeys;
  ASSERT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds >= renewed; }));
  EXPECT_GE(count(), static_cast<std::int64_t>(kKeys));
  for (std::uint64_t i = 0; i < kKeys; ++i) worker.store.release({limit::key_of(i), &one});
  // At most one key may be left: the key of the store's test charge.
  EXPECT_TRUE(worker.turn_until([&] { return count() <= 1; }));
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U);
}

}  // namespace
}  // namespace weir::redis
