// Soft and elastic limits over time, with a key table: which requests weir admits, and what it reports to
// clients.
#include "unit/policy/sample.hpp"

#include "weir/limit/key_table.hpp"

#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class Throttling : public testing::Test {
 protected:
  Decision ask(double load = 1, base::TimePoint now = kNow) {
    request_.load = load;
    EXPECT_FALSE(evaluation_.collect(rules_, request_, kKeys));
    table_.charge(evaluation_.local.charges(), now, evaluation_.local.outcomes());
    const Bill* bills[] = {&evaluation_.local};
    return decide(bills, now);
  }
  int admitted_of(int requests, double load) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) admitted += ask(load).verdict == Verdict::Forward ? 1 : 0;
    return admitted;
  }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_ = {rule_of("r", {"ip"})};
  limit::KeyTable table_{1000};
  Evaluation evaluation_;
};

TEST_F(Throttling, SoftLimitAdmitsItsMarginAndThenReportsThatTheLimitIsExceeded) {
  rules_[0].limiter = bucket(1, 4);
  rules_[0].soft = bucket(1, 6);
  for (const auto remaining : {3U, 2U, 1U, 0U}) {
    const auto d = ask();
    EXPECT_EQ(d.verdict, Verdict::Forward);
    EXPECT_EQ(d.outcome.remaining, remaining);
    EXPECT_EQ(limit::quota(*d.limiter), 4U);
    EXPECT_FALSE(d.exceeded);
  }
  for (const int seconds_to_one : {2, 3}) {
    const auto d = ask();
    EXPECT_EQ(d.verdict, Verdict::Forward);
    EXPECT_TRUE(d.exceeded);
    EXPECT_EQ(d.outcome.remaining, 0U);
    EXPECT_EQ(d.outcome.more_after, std::chrono::seconds(seconds_to_one));
  }
  const auto refused = ask();
  EXPECT_EQ(refused.verdict, Verdict::Reject);
  EXPECT_FALSE(refused.exceeded);
  EXPECT_EQ(refused.outcome.remaining, 0U);
  // After a second, the soft limit admits another request.
  EXPECT_EQ(refused.outcome.retry_after, std::chrono::seconds(1));
  EXPECT_TRUE(ask(1, kNow + std::chrono::seconds(1)).exceeded);
}

TEST_F(Throttling, ReportsTheRuleWithTheSmallestShareOfItsReportedLimit) {
  rules_[0].limiter = bucket(1, 4);
  rules_[0].soft = bucket(1, 8);
  rules_.push_back(rule_of("s", {"ip"}));
  rules_[1].limiter = bucket(1, 6);
  // After the first request, clients see that 3 of 4 units of rule "r" are left, and 5 of 6 units of rule
  // "s". The soft limit of "r" still has 7 of 8 units, a larger share than that of "s". Each further request
  // leaves the same order.
  for (const auto remaining : {3U, 2U, 1U, 0U}) {
    const auto d = ask();
    EXPECT_EQ(d.rule, rules_.data());
    EXPECT_EQ(d.outcome.remaining, remaining);
  }
}

// Whether weir reports that a soft limit is exceeded must not depend on the order of the rules, nor on which
// rule the rate limit headers report.
TEST_F(Throttling, ExceededSoftLimitOfAnyRuleIsReported) {
  rules_[0].limiter = bucket(1, 1);
  rules_[0].soft = bucket(1, 3);
  rules_.push_back(rule_of("wide", {"ip"}));
  EXPECT_FALSE(ask().exceeded);
  EXPECT_TRUE(ask().exceeded);
  std::swap(rules_[0], rules_[1]);
  EXPECT_TRUE(ask().exceeded);
}

// Property: the remaining units that clients see increase exactly at `more_after`, not earlier.
TEST_F(Throttling, ReportedRemainingUnitsIncreaseExactlyAtTheReportedTime) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const limit::Rate rate{1 + random() % 50, base::Duration(1 + random() % 10'000'000)};
    const auto burst = 1 + random() % 20;
    const auto margin = 1 + random() % 10;
    Rule rule{.name = "r", .limiter = *limit::TokenBucket::make(rate, burst)};
    rule.soft = *limit::TokenBucket::make(rate, burst + margin);
    if (random() % 2 != 0) {
      rule.limiter = *limit::Gcra::make(rate, burst);
      rule.soft = *limit::Gcra::make(rate, burst + margin);
    }
    limit::Cell cell;
    auto now = kNow;
    for (int n = 0; n < 30; ++n) {
      now += base::Duration(random() % static_cast<std::uint64_t>(rate.period.count()));
      const auto step = limit::step(*rule.soft, cell, now, 1 + random() % 3);
      if (!step.outcome.allowed) continue;
      cell = step.next;
      Bill bill;
      bill.add({&rule, {rule.soft->get(), rule.limiter.get()}}, {.key = {}, .limiter = rule.soft->get()});
      bill.outcomes()[0] = step.outcome;
      const Bill* bills[] = {&bill};
      const auto told = decide(bills, now).outcome;
      const auto told_at = [&](base::TimePoint then) {
        const auto later = limit::step(*rule.soft, cell, then, 1).outcome;
        const auto left = later.remaining + (later.allowed ? 1 : 0);
        return left > margin ? left - margin : 0;
      };
      ASSERT_EQ(told_at(now), told.remaining);
      if (told.more_after == base::Duration{0}) continue;
      ASSERT_GT(told_at(now + told.more_after), told.remaining);
      const auto before = told.more_after - base::Duration(2);  // weir rounded more_after up twice
      if (before.count() > 0) {
        ASSERT_EQ(told_at(now + before), told.remaining);
      }
    }
  }
}

class ElasticLimit : public Throttling {
 protected:
  ElasticLimit() {
    rules_[0].limiter = bucket(1, 2);
    rules_[0].elastic = Elastic{.limiter = bucket(1, 5), .while_load_below = 0.5};
  }
};

TEST_F(ElasticLimit, HigherElasticLimitAppliesAtLowLoad) {
  EXPECT_EQ(admitted_of(9, 0.1), 5);
  EXPECT_EQ(limit::quota(*ask(0.1).limiter), 5U);
}

TEST_F(ElasticLimit, NormalLimitAppliesAtHighLoad) {
  EXPECT_EQ(admitted_of(9, 0.5), 2);
  EXPECT_EQ(limit::quota(*ask(0.5).limiter), 2U);
  EXPECT_EQ(admitted_of(9, 0.1), 3);  // the elastic limit also counts the two requests admitted before
}

// weir charges each request to both limits. Otherwise a client could use up one limit after the other when
// the load rises and falls.
TEST_F(ElasticLimit, AdmissionsAtLowLoadUseUpTheLimitForHighLoad) {
  EXPECT_EQ(admitted_of(4, 0.1), 4);
  EXPECT_EQ(admitted_of(9, 0.9), 0);
  EXPECT_EQ(admitted_of(9, 0.1), 1);
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  request_.client.network = ip("203.0.113.8");
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += admitted_of(1, random() % 2 != 0 ? 0.9 : 0.1);
  EXPECT_EQ(admitted, 5);
}

TEST_F(ElasticLimit, LimitThatIsNotEnforcedAtThisLoadIsStillCharged) {
  ask(0.1);
  ASSERT_EQ(evaluation_.local.charges().size(), 2U);
  EXPECT_EQ(evaluation_.local.charges()[0].limiter_id, 1U);
  EXPECT_EQ(evaluation_.local.charges()[1].limiter_id, 0U);
  EXPECT_FALSE(evaluation_.local.source(0).applied.counted);
  EXPECT_TRUE(evaluation_.local.source(1).applied.counted);
  EXPECT_FALSE(evaluation_.local.charges()[1].enforced);
  EXPECT_NE(evaluation_.local.charges()[0].key, evaluation_.local.charges()[1].key);
}

TEST_F(ElasticLimit, LocalSharesOfBothLimitsAreChargedIfRedisIsUnavailable) {
  rules_[0].store = Store::Redis;
  rules_[0].elastic->local_share = bucket(1, 3);
  request_.load = 0.1;
  EXPECT_FALSE(evaluation_.collect(rules_, request_, kKeys));
  Bill fallback;
  EXPECT_EQ(evaluation_.fall_back(request_, kKeys, fallback), nullptr);
  ASSERT_EQ(fallback.charges().size(), 2U);
  EXPECT_EQ(fallback.charges()[0].limiter, rules_[0].elastic->local_share->get());
  EXPECT_TRUE(fallback.source(1).applied.counted);
  EXPECT_FALSE(fallback.charges()[1].enforced);
}

}  // namespace
}  // namespace weir::policy
