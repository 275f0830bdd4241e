// Compares the scripts with the key table. Both must return the same outcomes for the same sequence of
// checks, charges, settlements and refunds. If a check is settled, its actual cost is charged even beyond the
// limit, as by a rule with `overdraft`.
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/settle.hpp"

#include <memory>

namespace weir::redis {
namespace {

using limit::Case;
using limit::Cost;
using limit::Dice;
using limit::KeyTable;
using limit::Outcome;
using namespace std::chrono_literals;

class SettleScript : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kKeys = 2;

  Server server_;
  TimedScripts scripts_{server_};
  const std::uint64_t seed_ = limit::new_seed();
  Dice dice_{seed_};
  std::unique_ptr<KeyTable> table_;
  std::vector<Case> rules_;
  std::vector<Refund> under_way_;
  base::TimePoint now_{};
  std::array<int, limit::kAlgorithms> debts_{}, surpluses_{}, paid_meanwhile_{};
  int resets_ = 0, checks_ = 0, refused_checks_ = 0;

  static constexpr base::TimePoint kLast{
      // The time is before the year 2112, where the range of limit::timestamp_at() ends.
      base::Duration(4'400'000'000'000'000)};

  void begin_case() {
    scripts_.forget_all();
    table_ = std::make_unique<KeyTable>(100);
    under_way_.clear();
    rules_.clear();
    while (rules_.size() < kKeys)
      if (auto rule = dice_.limiter(); limit::settles(rule.limiter)) rules_.push_back(std::move(rule));
    now_ = base::TimePoint(base::Duration(dice_.between(1'600'000'000'000'000, 2'600'000'000'000'000)));
    scripts_.set_clock(now_);
  }

  [[nodiscard]] limit::Charge line(std::size_t i, Cost cost) const {
    return {limit::key_of(i), &rules_[i].limiter, cost, static_cast<limit::RuleIndex>(i)};
  }
  [[nodiscard]] const Case& rule_of(const limit::Charge& charge) const { return rules_[charge.rule]; }

  // Removes unused keys from the table and from Redis, as may happen at any time. In this test Redis does not
  // expire keys itself, because its clock does not advance.
  void forget_drained() {
    (void)table_->sweep(now_, 10'000);
    for (std::size_t i = 0; i < kKeys; ++i) {
      const auto& rule = rules_[i];
      const bool drained = table_->current_outcome(line(i, 1), now_) == limit::full(rule.limiter);
      const auto expires = scripts_.expiry_of(limit::key_of(i));
      EXPECT_TRUE(drained || expires > now_) << rule << " expires too early";
      // Logs are skipped, because a refund in a log does not shorten the key's time to live.
      EXPECT_TRUE(!drained || rule.merges() || expires <= now_ + 2ms) << rule << " expires too late";
      if (drained) scripts_.forget(limit::key_of(i));
    }
  }

  void ask_both() {
    std::vector<limit::Charge> bill;
    for (std::size_t i = 0; i < kKeys; ++i)
      if (!dice_.one_in(4)) bill.push_back(line(i, dice_.one_in(5) ? 0 : dice_.cost(rules_[i])));
    if (bill.empty()) return;
    const auto reply = scripts_.charge(bill);
    std::vector<Outcome> outcomes(bill.size()), expected(bill.size());
    base::TimePoint then;
    ASSERT_EQ(read_outcomes(reply, bill, outcomes, then), ReplyReading::Answer);
    const bool charged = table_->charge(bill, now_, expected);
    for (std::size_t i = 0; i < bill.size(); ++i) {
      EXPECT_EQ(outcomes[i], expected[i]) << rule_of(bill[i]) << ", cost " << bill[i].cost;
      if (charged || bill[i].cost == 0) under_way_.push_back({bill[i], now_});
      checks_ += bill[i].cost == 0 ? 1 : 0;
      refused_checks_ += bill[i].cost == 0 && !outcomes[i].allowed ? 1 : 0;
    }
  }

  Cost actual_for(const Refund& line) {
    const auto reserved = line.charge.cost;
    if (dice_.one_in(3)) return 0;
    if (dice_.one_in(3)) return dice_.between(0, reserved);
    if (dice_.one_in(3)) return reserved + dice_.between(1, 3);
    return dice_.magnitude(0, limit::kMaxCost);
  }

  void settle_both() {
    if (under_way_.empty()) return;
    const auto at = under_way_.begin() + static_cast<std::ptrdiff_t>(dice_.between(0, under_way_.size() - 1));
    Refund line = *at;
    under_way_.erase(at);
    line.actual = actual_for(line);
    if (line.actual == line.charge.cost) return;
    const auto algorithm = static_cast<std::size_t>(rule_of(line.charge).algorithm);
    ++(line.actual > line.charge.cost ? debts_ : surpluses_)[algorithm];
    const bool is_full = table_->current_outcome(line.charge, now_) == limit::full(*line.charge.limiter);
    if (is_full && line.actual > line.charge.cost) ++paid_meanwhile_[algorithm];
    scripts_.refund(line);
    table_->settle(line.charge, {line.departure, line.actual, now_});
  }

  // Resets a key in the key table and in Redis. The clock must advance afterwards, because Redis compares the
  // times of charges with the time of the reset.
  void reset_both() {
    const auto key = limit::key_of(dice_.between(0, kKeys - 1));
    if (now_ >= kLast) return;
    (void)table_->forget(key, now_);
    ++resets_;
    scripts_.reset(key);
    now_ += 1us;
    scripts_.set_clock(now_);
  }

  void go_on() {
    const auto& rule = rules_[dice_.between(0, kKeys - 1)];
    if (!dice_.one_in(3))
      now_ += std::min<base::Duration>(dice_.pause(rule), std::chrono::hours(24 * 366 * 30));
    now_ = std::min(now_, kLast);
    scripts_.set_clock(now_);
    forget_drained();
  }
};

TEST_F(SettleScript, RandomSettlementsGiveTheSameOutcomesAsTheModel) {
  for (int round = 0; round < 1'500; ++round) {
    begin_case();
    for (int request = 0; request < 20; ++request) {
      if (dice_.one_in(2))
        ask_both();
      else if (dice_.one_in(10))
        reset_both();
      else
        settle_both();
      ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", round " << round << ", request " << request
                                 << ", at " << now_.time_since_epoch().count();
      go_on();
      ASSERT_FALSE(HasFailure()) << "seed " << seed_ << ", round " << round << ", after request " << request;
    }
  }
  EXPECT_GT(resets_, 100);
  EXPECT_GT(checks_, 1'000);
  EXPECT_GT(refused_checks_, 100);
  for (std::size_t i = 0; i < limit::kAlgorithms; ++i) {
    if (static_cast<limit::Algorithm>(i) == limit::Algorithm::LeakyBucket) continue;
    EXPECT_GT(debts_[i], 50) << "algorithm " << i;
    EXPECT_GT(surpluses_[i], 50) << "algorithm " << i;
    EXPECT_GT(paid_meanwhile_[i], 5) << "algorithm " << i;
  }
}

// A reload changes the algorithm of a rule with `overdraft`. Checks charge nothing, so the state of the old
// algorithm is still in Redis when the overdraft is charged.
class OverdraftAfterReload : public ::testing::Test {
 protected:
  static std::vector<limit::Limiter> limiters() {
    const limit::Rate five{5, 1h};
    return {limit::TokenBucket::make(five, 5).value(), limit::SteppedBucket::make(five, 5).value(),
            limit::FixedWindow::make(five).value(),    limit::SlidingWindow::make(five).value(),
            limit::SlidingLog::make(five).value(),     limit::Concurrency::make(5).value()};
  }
  Outcome check(const limit::Limiter& limiter) {
    const limit::Charge line{key_, &limiter, 0};
    Outcome outcome;
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(scripts_.charge({&line, 1}), {&line, 1}, {&outcome, 1}, then),
              ReplyReading::Answer);
    return outcome;
  }
  void overdraw(const limit::Limiter& limiter, Cost units) {
    EXPECT_EQ(scripts_.refund({{key_, &limiter, 0}, begin_, units}).numbers.at(0), 1);
  }

  Server server_;
  TimedScripts scripts_{server_};
  const base::TimePoint begin_{1'800'000'000s};
  const limit::Key key_ = limit::key_of(1);
};

TEST_F(OverdraftAfterReload, OverdraftReplacesTheStateOfAnotherAlgorithm) {
  const auto all = limiters();
  scripts_.set_clock(begin_);
  for (std::size_t before = 0; before < all.size(); ++before)
    for (std::size_t after = 0; after < all.size(); ++after) {
      if (before == after || limit::holds(all[after])) continue;
      // Each forget_all() switches to the other variant of the scripts. In one variant, an old log or
      // concurrency limit has a string as its state. In the other, its state is a list or a sorted set.
      for (int variant = 0; variant < 2; ++variant) {
        SCOPED_TRACE(limit::describe(all[before]) + " to " + limit::describe(all[after]));
        scripts_.forget_all();
        for (std::uint64_t i = 0; i < 4; ++i) {
          const limit::Charge old{key_, &all[before]};
          scripts_.set_clock(begin_ + i * 1us);
          scripts_.charge({&old, 1}, {1, i + 1, 1h});
        }
        EXPECT_EQ(check(all[after]).remaining, 5U);
        overdraw(all[after], 3);
        EXPECT_EQ(check(all[after]).remaining, 2U);
        overdraw(all[after], 9);
        EXPECT_FALSE(check(all[after]).allowed);
      }
    }
}

TEST_F(OverdraftAfterReload, OverdraftAddsToTheChargesOfABucketThatHadALease) {
  const auto bucket = limiters()[0];
  scripts_.set_clock(begin_);
  limit::Charge leased{key_, &bucket, 4};
  leased.lease = 1;
  scripts_.charge({&leased, 1});
  EXPECT_EQ(check(bucket).remaining, 1U);
  overdraw(bucket, 3);
  EXPECT_FALSE(check(bucket).allowed);
  EXPECT_EQ(check(bucket).retry_after, 12min * 3);
}

class ResetScript : public ::testing::Test {
 protected:
  static constexpr base::TimePoint kReset{1'800'000'000s};

  // Charges at `now` and refunds a charge that was made at `charged_at`. Returns true if Redis accepted the
  // refund.
  bool gives_back(base::TimePoint charged_at, base::TimePoint now) {
    scripts_.set_clock(now);
    scripts_.charge({&line_, 1});
    return scripts_.refund({line_, charged_at}).numbers.at(0) == 1;
  }

  Server server_;
  TimedScripts scripts_{server_};
  const limit::Limiter ten_ = limit::Gcra::make({1, 1h}, 9).value();
  const limit::Charge line_{limit::key_of(1), &ten_};

  void SetUp() override {
    scripts_.set_clock(kReset);
    scripts_.reset(line_.key);
  }
};

TEST_F(ResetScript, ChargeBeforeAResetIsNotRefunded) {
  EXPECT_FALSE(gives_back(kReset - 1us, kReset));
  EXPECT_FALSE(gives_back(kReset, kReset));
  EXPECT_FALSE(gives_back(kReset, kReset + 1us));
  EXPECT_TRUE(gives_back(kReset + 1us, kReset + 1us));
}

// After a failover, Redis's clock may be behind the time of a reset. Every charge then seems to be made
// before the reset, so the reset must be ignored.
TEST_F(ResetScript, ResetWithATimeInTheFutureIsIgnored) {
  EXPECT_TRUE(gives_back(kReset - 10s, kReset - 1us));
  EXPECT_TRUE(gives_back(kReset - 1us, kReset - 1us));
}

// The rate of a rule changes from 7 units a second to another rate. The state of a bucket is a time. At a
// rate of n units a second, its fraction of a microsecond is a count of nths, which the other rate cannot
// express. So the script must round the spent time up to a whole microsecond.
class ChangedRate : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static limit::Limiter a_second(std::uint64_t count, std::uint64_t burst) {
    return limit::TokenBucket::make({count, 1s}, burst).value();
  }
  // Spends 5 units at 7 units a second. Their refill time, the spent time, is 714,285 5/7 µs.
  void SetUp() override {
    const auto seven = a_second(7, 7);
    const limit::Charge line{key_, &seven, 5};
    scripts_.set_clock(begin_);
    scripts_.charge({&line, 1});
  }
  // Returns the time from begin_ until one more unit is admitted.
  base::Duration admits_after(const limit::Charge& line) {
    limit::Outcome outcome;
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(scripts_.charge({&line, 1}), {&line, 1}, {&outcome, 1}, then),
              ReplyReading::Answer);
    EXPECT_FALSE(outcome.allowed);
    for (const auto early : {1us, 0us}) {
      scripts_.set_clock(begin_ + outcome.retry_after - early);
      limit::Outcome again;
      EXPECT_EQ(read_outcomes(scripts_.charge({&line, 1}), {&line, 1}, {&again, 1}, then),
                ReplyReading::Answer);
      EXPECT_EQ(again.allowed, early == 0us);
    }
    return outcome.retry_after;
  }

  Server server_;
  TimedScripts scripts_{server_};
  const base::TimePoint begin_{1'800'000'000s};
  const limit::Key key_ = limit::key_of(1);
  const limit::Limiter two_ = a_second(GetParam(), 2);
  const limit::Charge line_{key_, &two_};
  const std::int64_t parts_ = static_cast<std::int64_t>(GetParam());  // units per second at the new rate

  // Returns the spent time (714,286 µs after the rounding) minus the refill time of `tokens` units at the new
  // rate. Rounded up to whole microseconds.
  [[nodiscard]] base::Duration spent_but(std::int64_t tokens) const {
    const auto micros = 714'286 * parts_ - tokens * 1'000'000;
    return base::Duration((micros + parts_ - 1) / parts_);
  }
};

TEST_P(ChangedRate, SpentUnitsAreRoundedUpByACharge) {
  EXPECT_EQ(admits_after(line_), spent_but(1));
}

TEST_P(ChangedRate, SpentUnitsAreRoundedUpByAChargeUnderALargerBurst) {
  // A bucket of burst 3 admits a unit while at most two units are spent. At three units a second, their
  // refill time is 666,666 2/3 µs.
  const auto three = a_second(GetParam(), 3);
  EXPECT_EQ(admits_after({key_, &three}), spent_but(2));
}

TEST_P(ChangedRate, SpentUnitsAreRoundedUpByARefund) {
  EXPECT_EQ(scripts_.refund({line_, begin_}).numbers.at(0), 1);
  EXPECT_EQ(admits_after(line_), spent_but(2));
}

TEST_P(ChangedRate, SpentUnitsAboveTheLimitAreRoundedUp) {
  EXPECT_EQ(scripts_.refund({line_, begin_, 2}).numbers.at(0), 1);
  EXPECT_EQ(admits_after(line_), spent_but(0));
}

INSTANTIATE_TEST_SUITE_P(RequestsPerSecond, ChangedRate, ::testing::Values(3, 4, 5));

}  // namespace
}  // namespace weir::redis
