// Tests how decide() combines outcomes: which rule it reports, which rule refuses and which rule delays.
#include "unit/policy/sample.hpp"

#include "weir/policy/evaluation.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using std::chrono::seconds;

class Decide : public testing::Test {
 protected:
  static limit::Outcome admitted(limit::Cost remaining, base::Duration delay = {}) {
    return {.allowed = true, .remaining = remaining, .delay = delay};
  }
  static limit::Outcome refused(base::Duration retry_after) {
    return {.allowed = false, .retry_after = retry_after};
  }

  void add(Bill& bill, const Rule& rule, const limit::Outcome& outcome, bool enforced = true) {
    bill.add({&rule, {rule.limiter.get(), rule.limiter.get()}},
             {.key = {}, .limiter = rule.limiter.get(), .enforced = enforced});
    bill.outcomes().back() = outcome;
  }
  [[nodiscard]] Decision decision() const {
    const Bill* bills[] = {&local_, &remote_};
    return decide(bills, kNow);
  }

  Rule ten_ = rule_of("ten", {"ip"});
  Rule thousand_ = Rule{.name = "thousand", .limiter = bucket(10, 1000)};
  Rule third_ = Rule{.name = "third", .limiter = bucket(10, 3)};
  Bill local_, remote_;
};

TEST_F(Decide, ForwardsIfNoRuleApplies) {
  const auto d = decision();
  EXPECT_EQ(d.verdict, Verdict::Forward);
  EXPECT_EQ(d.rule, nullptr);
  EXPECT_EQ(d.limiter, nullptr);
}

TEST_F(Decide, ReportsTheRuleWithTheSmallestRemainingShare) {
  add(local_, ten_, admitted(5));         // 50 % remain
  add(remote_, thousand_, admitted(60));  // 6 % remain
  const auto d = decision();
  EXPECT_EQ(d.verdict, Verdict::Forward);
  EXPECT_EQ(d.rule, &thousand_);
  EXPECT_EQ(d.limiter, thousand_.limiter.get());
  EXPECT_EQ(d.outcome.remaining, 60U);
}

TEST_F(Decide, ReportsTheRuleWithTheSmallestRemainingShareWithoutRounding) {
  add(local_, thousand_, admitted(334));  // slightly more than a third
  add(local_, third_, admitted(1));
  EXPECT_EQ(decision().rule, &third_);
  local_.outcomes()[0].remaining = 333;
  EXPECT_EQ(decision().rule, &thousand_);
  Rule most{.name = "most", .limiter = bucket(1'000'000'000, limit::kMaxCost)};
  Rule almost{.name = "almost", .limiter = bucket(1'000'000'000, limit::kMaxCost - 1)};
  local_.clear();
  add(local_, most, admitted(limit::kMaxCost - 1));
  add(local_, almost, admitted(limit::kMaxCost - 2));
  EXPECT_EQ(decision().rule, &almost);
}

TEST_F(Decide, RequestIsRefusedIfAnyRuleRefusesItAndTheLongestWaitIsReported) {
  add(local_, ten_, admitted(0, seconds(9)));
  add(local_, thousand_, refused(seconds(3)));
  add(remote_, third_, refused(seconds(2)));
  auto d = decision();
  EXPECT_EQ(d.verdict, Verdict::Reject);
  EXPECT_EQ(d.rule, &thousand_);
  EXPECT_EQ(d.outcome.retry_after, seconds(3));
  EXPECT_EQ(d.delayed_by, nullptr);
  // the rule never admits the request, so its wait is the longest
  remote_.outcomes()[0].retry_after = base::kForever;
  d = decision();
  EXPECT_EQ(d.rule, &third_);
  EXPECT_EQ(d.outcome.retry_after, base::kForever);
}

// These tests run at 22:13:20, 100 seconds before the end of the rule's hours. After the hours, the rule
// rejects no request.
TEST_F(Decide, RetryAfterIsNeverLaterThanTheEndOfTheRulesHours) {
  thousand_.match.hours = parse_hours("20:00-22:15").value();
  add(local_, thousand_, refused(seconds(3600)));
  local_.outcomes()[0].more_after = seconds(3600);
  EXPECT_EQ(decision().outcome.retry_after, seconds(100));
  EXPECT_EQ(decision().outcome.more_after, seconds(100)) << "both headers give the same instant";
  add(remote_, third_, refused(seconds(99)));
  EXPECT_EQ(decision().rule, &thousand_);
  remote_.outcomes()[0].retry_after = seconds(101);
  EXPECT_EQ(decision().rule, &third_);
  EXPECT_EQ(decision().outcome.retry_after, seconds(101));
  remote_.clear();
  local_.outcomes()[0].retry_after = base::kForever;
  EXPECT_EQ(decision().outcome.retry_after, seconds(100));
  local_.outcomes()[0].retry_after = seconds(10);
  EXPECT_EQ(decision().outcome.retry_after, seconds(10));
}

TEST_F(Decide, RequestWaitsForTheLongestDelayAndReportsTheRuleWithTheSmallestRemainingShare) {
  add(local_, thousand_, admitted(900, seconds(1)));
  add(local_, ten_, admitted(1));
  add(remote_, third_, admitted(3, seconds(2)));
  const auto d = decision();
  EXPECT_EQ(d.verdict, Verdict::Delay);
  EXPECT_EQ(d.start_at, kNow + seconds(2));
  EXPECT_EQ(d.delayed_by, &third_);
  EXPECT_EQ(d.rule, &ten_);
}

TEST_F(Decide, ShadowRuleNeverChangesTheDecision) {
  add(local_, thousand_, admitted(900));
  add(local_, ten_, refused(seconds(5)), false);
  add(remote_, third_, admitted(0, seconds(5)), false);
  const auto d = decision();
  EXPECT_EQ(d.verdict, Verdict::Forward);
  EXPECT_EQ(d.rule, &thousand_);
  local_.clear();
  EXPECT_EQ(decision().rule, nullptr);
}

TEST_F(Decide, QueueWithoutFreePlacesIsReportedInsteadOfALimitWithUnitsLeft) {
  Rule line{.name = "line", .limiter = limit::LeakyBucket::make({1, seconds(1)}, 0, base::kForever).value()};
  add(local_, ten_, admitted(1));
  add(local_, line, admitted(0));
  EXPECT_EQ(decision().rule, &line);
}

}  // namespace
}  // namespace weir::policy
