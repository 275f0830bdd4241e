// Tests checks and overdrafts of questions. The tests need no sockets: their limits are in memory, or in a
// Redis that is unreachable.
#include "proxy/admission/admission_controller.hpp"
#include "unit/proxy/lone_worker.hpp"

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using policy::Verdict;
using std::chrono::hours;

class Overdrafts : public ::testing::Test, protected LoneWorker {
 protected:
  static policy::Rule rule_of(const char* name, limit::RuleIndex index, std::string_view key,
                              const limit::Limiter& limiter) {
    policy::Rule rule{.name = name, .index = index, .rule_number = index, .limiter = limiter};
    rule.key = {*policy::parse_key_part(key)};
    rule.descriptor_keys = policy::descriptor_keys_of(rule);
    return rule;
  }
  // The rule "tokens" has 100 tokens, gains one an hour, and permits overdrafts. The rule "calls" admits one
  // call an hour.
  Overdrafts() : LoneWorker({}, &nowhere()) {
    config.rules = {
        rule_of("tokens", 0, "descriptor:user", limit::TokenBucket::make({1, hours(1)}, 100).value()),
        rule_of("calls", 1, "descriptor:path", limit::TokenBucket::make({1, hours(1)}, 1).value())};
    config.rules[0].overdraft = true;
  }
  static const redis::RedisSettings& nowhere() {
    static const redis::RedisSettings settings;
    return settings;
  }

  struct Asked {
    explicit Asked(Worker& worker) : buffers(worker), admission(worker, worker.config(), buffers) {}
    std::vector<policy::Descriptor> descriptors;
    ExchangeBuffers buffers;
    AdmissionController admission;
    AdmissionResult result;
    [[nodiscard]] bool allowed() const { return result.decision.verdict == Verdict::Forward; }
    [[nodiscard]] const limit::Outcome& outcome() const { return result.decision.outcome; }
  };
  Asked& ask(std::vector<policy::Descriptor> descriptors, base::Duration after = {}) {
    auto& asked = *asked_.emplace_back(std::make_unique<Asked>(worker));
    asked.descriptors = std::move(descriptors);
    asked.buffers.request.head = &head_;
    asked.buffers.request.descriptors = asked.descriptors;
    asked.buffers.rules = config.rules;
    if (!asked.admission.decide_here(began_ + after, policy::kDefaultPriority, asked.result)) {
      bool done = false;
      net::spawn(context.get_executor(), until_decided(asked),
                 [&](const std::exception_ptr&) { done = true; });
      context.restart();
      context.poll();
      EXPECT_TRUE(done) << "an unreachable Redis fails at once";
    }
    return asked;
  }
  static net::Task<void> until_decided(Asked& asked) { asked.result = co_await asked.admission.ask_redis(); }
  static policy::Descriptor ann(limit::Cost tokens) {
    return {.entries = {{"user", "ann"}}, .cost = tokens, .exact = true};
  }
  static policy::Descriptor call(limit::Cost cost = 1) {
    return {.entries = {{"path", "/"}}, .cost = cost, .exact = true};
  }

  http::RequestHead head_;
  const base::TimePoint began_ = clock.now();
  std::vector<std::unique_ptr<Asked>> asked_;
};

TEST_F(Overdrafts, OverdraftIsChargedWholeAndChecksAreRefusedUntilItIsPaid) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask({ann(0)}).outcome().remaining, 100U) << "a check charges nothing";
  EXPECT_EQ(ask({ann(30)}).outcome().remaining, 70U);
  EXPECT_TRUE(ask({ann(0)}).allowed());
  const auto& beyond = ask({ann(200)});
  EXPECT_TRUE(beyond.allowed()) << "some units were left before";
  EXPECT_EQ(beyond.outcome().remaining, 0U);
  EXPECT_FALSE(ask({ann(0)}).allowed());
  const auto& again = ask({ann(5)});
  EXPECT_FALSE(again.allowed()) << "nothing was left before";
  EXPECT_EQ(again.outcome().retry_after, hours(136));
  EXPECT_EQ(ask({ann(0)}).outcome().retry_after, hours(136))
      << "235 of 100 units are used, and one is needed";
  EXPECT_FALSE(ask({ann(0)}, hours(136) - base::Duration(1)).allowed());
  EXPECT_TRUE(ask({ann(0)}, hours(136)).allowed());
  EXPECT_EQ(counters.settlements(0, observe::Settled::Debt).value(), 3U);
}

TEST_F(Overdrafts, OverdraftIsChargedThoughAnotherRuleRefuses) {
  EXPECT_TRUE(ask({call()}).allowed());
  EXPECT_FALSE(ask({ann(30), call()}).allowed());
  EXPECT_EQ(ask({ann(0)}).outcome().remaining, 70U);
  EXPECT_FALSE(ask({ann(0), call(0)}).allowed()) << "a refused check refuses the call";
}

TEST_F(Overdrafts, OverdraftIsChargedThoughAnotherRuleRefusesWithoutRedis) {
  auto& calls = config.rules[1];
  calls.store = policy::Store::Redis;
  calls.on_store_failure = policy::OnStoreFailure::Closed;
  const auto& asked = ask({ann(30), call()});
  EXPECT_EQ(asked.result.closed, &calls);
  EXPECT_EQ(ask({ann(0)}).outcome().remaining, 70U);
  EXPECT_EQ(counters.settlements(0, observe::Settled::Debt).value(), 1U);
}

TEST_F(Overdrafts, RefundDoesNotReturnAnOverdraft) {
  auto& asked = ask({ann(30), call()});
  EXPECT_TRUE(asked.allowed());
  asked.admission.refund();
  EXPECT_EQ(ask({ann(0)}).outcome().remaining, 70U);
  EXPECT_TRUE(ask({call()}).allowed()) << "the other charge was refunded";
}

TEST_F(Overdrafts, SettlementOfAPermitDoesNotChangeAnOverdraft) {
  auto& asked = *asked_.emplace_back(std::make_unique<Asked>(worker));
  asked.descriptors = {ann(30)};
  asked.buffers.request.head = &head_;
  asked.buffers.request.descriptors = asked.descriptors;
  asked.buffers.rules = config.rules;
  asked.admission.expect_settlement();
  ASSERT_TRUE(asked.admission.decide_here(began_, policy::kDefaultPriority, asked.result));
  asked.admission.settlements().settle_to_stated(50, began_);
  EXPECT_EQ(ask({ann(0)}).outcome().remaining, 70U);
}

TEST_F(Overdrafts, RuleInShadowModeIsChargedAndRefusesNothing) {
  config.rules[0].mode = policy::Mode::Shadow;
  EXPECT_TRUE(ask({ann(300)}).allowed());
  EXPECT_TRUE(ask({ann(0)}).allowed());
  EXPECT_EQ(counters.decisions(0, observe::RuleOutcome::ShadowRefused).value(), 1U);
}

TEST_F(Overdrafts, OverdraftIsChargedInThisProcessIfRedisDoesNotAnswer) {
  auto& rule = config.rules[0];
  rule.store = policy::Store::Redis;
  rule.local_share = rule.limiter;
  EXPECT_TRUE(ask({ann(30)}).allowed());
  EXPECT_EQ(ask({ann(0)}).outcome().remaining, 70U);
  EXPECT_TRUE(ask({ann(200)}).allowed());
  EXPECT_FALSE(ask({ann(0)}).allowed());
}

}  // namespace
}  // namespace weir::proxy
