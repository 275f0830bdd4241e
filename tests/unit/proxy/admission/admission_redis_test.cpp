// Tests AdmissionController with a Redis that is unreachable, that has refused an earlier request, or that
// has lost one node.
#include "proxy/admission/admission_controller.hpp"
#include "redis/cluster/cluster_slots.hpp"
#include "redis/scripts/bill.hpp"
#include "unit/net/sockets.hpp"
#include "unit/proxy/lone_worker.hpp"
#include "unit/redis/cluster/two_masters.hpp"

#include "weir/limit/concurrency.hpp"
#include "weir/policy/evaluation.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using observe::RuleOutcome;
using policy::OnStoreFailure;
using policy::Verdict;
using std::chrono::hours;

limit::Limiter a_day(std::uint64_t count) {
  return limit::FixedWindow::make({count, hours(24 * 365 * 30)}).value();  // no window ends during the test
}

policy::Rule rule_of(std::string_view key, const limit::Limiter& limiter) {
  policy::Rule rule{.name = "r", .limiter = limiter};
  if (!key.empty()) rule.key = {*policy::parse_key_part(key)};
  return rule;
}
policy::Rule in_redis(std::string_view key, const limit::Limiter& limiter,
                      OnStoreFailure on_failure = OnStoreFailure::Local) {
  auto rule = rule_of(key, limiter);
  rule.store = policy::Store::Redis;
  rule.on_store_failure = on_failure;
  return rule;
}

Configuration configuration(std::vector<policy::Rule> rules) {
  Configuration config;
  config.rules = std::move(rules);
  for (auto& rule : config.rules) {
    rule.index = rule.rule_number = static_cast<limit::RuleIndex>(&rule - config.rules.data());
    rule.name += std::to_string(rule.index);
    config.settles = config.settles || rule.settlement;
  }
  return config;
}

struct Site : LoneWorker {
  Site(std::vector<policy::Rule> rules, const redis::RedisSettings& settings)
      : LoneWorker(configuration(std::move(rules)), &settings) {}
  void reach_redis() {
    store->start();
    ASSERT_TRUE(net::turn_until(
        context, [this] { return store->state() == redis::StoreState::Up; }, std::chrono::seconds(20)));
  }
  [[nodiscard]] std::uint64_t counted(std::size_t rule, RuleOutcome outcome) const {
    return counters.decisions(static_cast<limit::RuleIndex>(rule), outcome).value();
  }
};

// One request. The destructor refunds its charges unless keep() was called. `meanwhile` runs after the
// command was sent to Redis and before the reply is read.
struct Asked {
  explicit Asked(Site& a_site, std::string_view user = "ann", const std::function<void()>& meanwhile = {},
                 std::span<const policy::Descriptor> descriptors = {})
      : site(a_site), buffers(site.worker), admission(site.worker, site.config, buffers) {
    buffers.request.head = &head;
    buffers.rules = site.config.rules;
    buffers.request.client.user = user;
    buffers.request.descriptors = descriptors;
    decided_without_redis = admission.decide_here(site.clock.now(), policy::kDefaultPriority, result);
    if (decided_without_redis) return;
    bool done = false;
    net::spawn(site.context.get_executor(), until_decided(), [&](const std::exception_ptr&) { done = true; });
    if (meanwhile) meanwhile();
    EXPECT_TRUE(net::turn_until(
        site.context, [&] { return done; }, std::chrono::seconds(20)));
  }
  ~Asked() { admission.abandon(); }
  net::Task<void> until_decided() { result = co_await admission.ask_redis(); }
  [[nodiscard]] Verdict verdict() const { return result.decision.verdict; }

  Site& site;
  http::RequestHead head;
  ExchangeBuffers buffers;
  AdmissionController admission;
  AdmissionResult result{};
  bool decided_without_redis = false;  // true if weir decided without asking Redis
};

// weir releases the permits in this process and in Redis at once, before the client has read its answer.
TEST(AdmissionRedis, RefusedRequestReleasesAllItsPermitsAtOnce) {
  const redis::RedisSettings nowhere;
  for (const auto on_failure : {OnStoreFailure::Local, OnStoreFailure::Closed}) {
    Site site({rule_of("", limit::Concurrency::make(1).value()), in_redis("", a_day(1), on_failure),
               in_redis("", limit::Concurrency::make(5).value())},
              nowhere);
    if (on_failure == OnStoreFailure::Local) {
      Asked first(site);
      EXPECT_EQ(first.verdict(), Verdict::Forward);
      EXPECT_EQ(first.buffers.permits.size(), 2U) << "one permit here, and one here in place of Redis";
      first.admission.keep();
    }
    const Asked refused(site);
    if (on_failure == OnStoreFailure::Local)
      EXPECT_EQ(refused.verdict(), Verdict::Reject);
    else
      EXPECT_EQ(refused.result.closed, &site.config.rules[1]);
    EXPECT_TRUE(refused.buffers.permits.empty());
    EXPECT_TRUE(refused.buffers.shared_permits.empty());
  }
}

// After a refusal, weir refunds the charges. The decision about a descriptor still names the rule that
// refused.
TEST(AdmissionRedis, DecisionForADescriptorNamesTheRefusingRuleEvenAfterTheRefund) {
  Site site({rule_of("user", a_day(9)), in_redis("user", a_day(1), OnStoreFailure::Local)},
            redis::RedisSettings{});
  Asked(site).admission.keep();
  const Asked refused(site);
  ASSERT_EQ(refused.verdict(), Verdict::Reject);
  const auto decision = refused.admission.decision_for_descriptor(0);
  EXPECT_EQ(decision.verdict, Verdict::Reject);
  EXPECT_EQ(decision.rule, &site.config.rules[1]);
  EXPECT_NE(decision.limiter, nullptr);
}

// A penalty of an hour, which the second violation begins.
constexpr limit::Penalty kPenalty{
    .after = 2, .first = hours(1), .grows = 1, .most = hours(1), .forget = hours(24)};

TEST(AdmissionRedis, ViolationsAreCountedWithoutRedisIfOnStoreFailureIsLocal) {
  auto rule = in_redis("user", a_day(1), OnStoreFailure::Local);
  rule.penalty = kPenalty;
  Site site({rule}, redis::RedisSettings{});
  Asked(site).admission.keep();
  for (int i = 0; i < 3; ++i) {
    const Asked refused(site);
    EXPECT_EQ(refused.verdict(), Verdict::Reject);
    EXPECT_EQ(refused.buffers.fallback.outcomes()[0].penalty_left.count() > 0, i > 0);
  }
  EXPECT_EQ(site.counters.penalties(0).value(), 1U);
}

TEST(AdmissionRedis, NoViolationIsCountedWithoutRedisIfOnStoreFailureIsOpenOrClosed) {
  for (const auto on_failure : {OnStoreFailure::Open, OnStoreFailure::Closed}) {
    auto rule = in_redis("user", a_day(1), on_failure);
    rule.penalty = kPenalty;
    Site site({rule}, redis::RedisSettings{});
    for (int i = 0; i < 4; ++i) Asked(site).admission.keep();
    EXPECT_EQ(site.counters.penalties(0).value(), 0U);
    EXPECT_EQ(site.table.stats().penalty_keys, 0U);
  }
}

class AdmissionDenials : public ::testing::Test {
 protected:
  redis::RedisSettings settings() {
    redis::RedisSettings settings;
    settings.address.unix_path = server_.path();
    return settings;
  }
  redis::Server server_;
};

TEST_F(AdmissionDenials, CachedRefusalRefusesTheNextRequestWithoutACallToRedis) {
  Site site({in_redis("user", a_day(1))}, settings());
  site.reach_redis();
  Asked(site).admission.keep();
  EXPECT_EQ(Asked(site).verdict(), Verdict::Reject);
  const Asked again(site);
  EXPECT_TRUE(again.decided_without_redis);
  EXPECT_EQ(again.verdict(), Verdict::Reject);
  EXPECT_EQ(site.counters.denied_here(0).value(), 1U);
  EXPECT_EQ(site.counted(0, RuleOutcome::Refused), 2U);
}

TEST_F(AdmissionDenials, PenaltyCountedWithoutRedisEndsWhenRedisAnswersAgain) {
  auto rule = in_redis("user", a_day(1));
  rule.penalty = kPenalty;
  Site site({rule}, settings());
  Asked(site).admission.keep();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Asked(site).verdict(), Verdict::Reject);
  EXPECT_EQ(site.counters.penalties(0).value(), 1U);
  site.reach_redis();
  EXPECT_EQ(Asked(site).verdict(), Verdict::Forward);
}

// A response may refund a charge of this rule at any time. So the next request may be admitted although an
// earlier one was refused.
TEST_F(AdmissionDenials, RefusalOfARuleWithASettlementIsNotCached) {
  auto rule = in_redis("user", a_day(1));
  rule.settlement = policy::Settlement{.charged = {{200, 299}}};
  Site site({rule}, settings());
  site.reach_redis();
  auto first = std::make_unique<Asked>(site);
  first->admission.keep();
  for (int i = 0; i < 2; ++i) {
    const Asked refused(site);
    EXPECT_FALSE(refused.decided_without_redis);
    EXPECT_EQ(refused.verdict(), Verdict::Reject);
  }
  EXPECT_EQ(site.counters.denied_here(0).value(), 0U);
}

// A queue with one departure an hour, in a Redis that does not reply for a while.
class AdmissionStall : public AdmissionDenials {
 protected:
  redis::RedisSettings settings(base::Duration timeout) {
    auto settings = AdmissionDenials::settings();
    settings.timeout = timeout;
    return settings;
  }
  // Runs the event loop for `length`.
  void wait(Site& site, base::Duration length) {
    const auto end = site.clock.now() + length;
    EXPECT_TRUE(net::turn_until(site.context, [&] { return site.clock.now() >= end; }));
  }
  policy::Rule queue_ = in_redis("", limit::LeakyBucket::make({1, hours(1)}, 50, base::kForever).value());
};

// If weir measured the delays in Redis's reply from the time of the command, the departures would be in the
// past. All requests would then depart at once.
TEST_F(AdmissionStall, DelayThatRedisDemandsStartsAtTheTimeOfItsReply) {
  Site site({queue_}, settings(std::chrono::seconds(20)));
  site.reach_redis();
  Asked(site).admission.keep();
  server_.freeze();
  base::TimePoint thawed;
  const Asked second(site, "ann", [&] {
    wait(site, std::chrono::milliseconds(30));
    thawed = site.clock.now();
    server_.thaw();
  });
  ASSERT_EQ(second.verdict(), Verdict::Delay);
  const auto delay = second.buffers.evaluation.remote.outcomes()[0].delay;
  EXPECT_GE(second.admission.decided_at(), thawed);
  EXPECT_EQ(second.admission.delayed().departure.at, second.admission.decided_at() + delay);
  EXPECT_EQ(second.result.decision.start_at, second.admission.decided_at() + delay);
}

TEST_F(AdmissionStall, LocalShareIsChargedAtTheTimeWhenRedisTimedOut) {
  const auto timeout = std::chrono::milliseconds(50);
  Site site({queue_}, settings(timeout));
  Asked first(site);  // fails at once, because there is no connection to Redis
  EXPECT_EQ(first.verdict(), Verdict::Forward);
  first.admission.keep();
  site.reach_redis();
  server_.freeze();
  const auto began = site.clock.now();
  const Asked second(site);
  ASSERT_EQ(second.verdict(), Verdict::Delay);
  EXPECT_GE(second.admission.decided_at(), began + timeout);
  EXPECT_EQ(second.admission.delayed().departure.at, first.admission.decided_at() + hours(1));
  EXPECT_EQ(second.admission.delayed().departure.promised, first.admission.decided_at() + hours(1));
}

// Two Redis nodes. One node has the keys of the first two rules, the other node has the key of the third
// rule.
class AdmissionCluster : public ::testing::Test {
 protected:
  AdmissionCluster() {
    config.names.slot_hashes = true;
    for (unsigned i = 0; user.empty(); ++i) {
      const auto name = "u" + std::to_string(i);
      if (node_of(site.config.rules[0], name) != node_of(site.config.rules[2], name)) user = name;
    }
    site.reach_redis();
  }
  std::size_t node_of(const policy::Rule& rule, std::string_view name) {
    http::RequestHead head;
    policy::Request request;
    request.head = &head;
    request.client.user = name;
    const auto tag = redis::tag_of(policy::slot_hash_of_client(rule, request, config.names.shared));
    return redis::slot_of({tag.data(), tag.size()}) / (redis::kSlots / 2);
  }

  redis::TwoMasters cluster;
  redis::RedisSettings settings = cluster.settings(std::chrono::seconds(1));
  Site site{{in_redis("user", a_day(1)), in_redis("user", a_day(5)), in_redis("", a_day(9))}, settings};
  Configuration& config = site.config;
  std::string user;
};

TEST_F(AdmissionCluster, OnlyRulesOfAnUnreachableRedisNodeFallBackToLocalCharges) {
  const auto away = node_of(config.rules[2], user);
  cluster[away].kill();
  Asked first(site, user);
  EXPECT_EQ(first.verdict(), Verdict::Forward);
  ASSERT_EQ(first.buffers.fallback.charges().size(), 1U);
  EXPECT_EQ(first.buffers.fallback.source(0).rule, &config.rules[2]);
  EXPECT_EQ(site.counted(0, RuleOutcome::Admitted), 1U);
  EXPECT_EQ(site.counted(2, RuleOutcome::StoreFailed), 1U);
  EXPECT_EQ(site.counted(0, RuleOutcome::StoreFailed), 0U);
  first.admission.keep();
}

// One node refuses its charges of the request, and records the violation. The other node has admitted its
// charges, which weir then refunds.
TEST_F(AdmissionCluster, RefusalByOneRedisNodeBeginsAPenaltyAndRefundsChargesOnTheOtherNode) {
  config.rules[0].penalty = kPenalty;
  Asked(site, user).admission.keep();
  for (int i = 0; i < 3; ++i) {
    const Asked refused(site, user);
    EXPECT_EQ(refused.verdict(), Verdict::Reject);
    EXPECT_EQ(refused.buffers.evaluation.remote.outcomes()[0].penalty_left.count() > 0, i > 0);
  }
  EXPECT_EQ(site.counters.penalties(0).value(), 1U);
  config.rules[0].match.methods = {"NONE"};
  const Asked rest(site, user);
  EXPECT_EQ(rest.verdict(), Verdict::Forward);
  EXPECT_EQ(rest.buffers.evaluation.remote.outcomes()[1].remaining, 7U)
      << "one of nine units was used before, and one now";
}

// A shadow rule refuses no request, whichever node has its key, so the other rules are charged. As keep() was
// not called, the destructor of Asked refunds these charges.
TEST_F(AdmissionCluster, RequestThatAShadowRuleWouldRefuseIsChargedByTheOtherRules) {
  config.rules[0].mode = policy::Mode::Shadow;
  Asked(site, user).admission.keep();
  cluster[node_of(config.rules[2], user)].kill();
  for (int i = 0; i < 3; ++i) {
    const Asked again(site, user);
    EXPECT_EQ(again.verdict(), Verdict::Forward);
    EXPECT_EQ(again.buffers.fallback.charges().size(), 1U);
    // shadow rules come last in the bill, so the first charge is that of rule 1
    EXPECT_EQ(again.buffers.evaluation.remote.source(0).rule, &config.rules[1]);
    EXPECT_EQ(again.buffers.evaluation.remote.outcomes()[0].remaining, 3U) << "the charge was refunded";
  }
  EXPECT_EQ(site.counted(0, RuleOutcome::ShadowRefused), 3U);
}

// The reachable node refuses the request and charges nothing. So weir neither refunds a charge on this node,
// nor charges the fallback for the node that is down.
TEST_F(AdmissionCluster, RefusalByOneRedisNodeLeavesNoRuleCharged) {
  Asked(site, user).admission.keep();
  cluster[node_of(config.rules[2], user)].kill();
  for (int i = 0; i < 3; ++i) {
    const Asked refused(site, user);
    EXPECT_EQ(refused.verdict(), Verdict::Reject);
    EXPECT_EQ(refused.result.decision.rule, &config.rules[0]);
    EXPECT_TRUE(refused.buffers.fallback.empty()) << "no local fallback was charged";
  }
  config.rules[0].match.methods = {"NONE"};
  const Asked rest(site, user);
  EXPECT_EQ(rest.verdict(), Verdict::Forward);
  EXPECT_EQ(rest.buffers.evaluation.remote.outcomes()[0].remaining, 3U)
      << "one of five units was used before, and one now";
}

// An overdraft is for units that are used already. So weir charges an overdraft for the unreachable node in
// this process, although the reachable node refuses the question.
TEST_F(AdmissionCluster, OverdraftForAnUnreachableNodeIsChargedLocallyThoughTheOtherNodeRefuses) {
  Asked(site, user).admission.keep();
  auto& budget = config.rules[2];
  cluster[node_of(budget, user)].kill();
  budget.overdraft = true;
  budget.cost = 4;
  budget.local_share = budget.limiter;
  const std::vector<policy::Descriptor> question = {{.entries = {{"team", "a"}}}};
  const Asked refused(site, user, {}, question);
  EXPECT_EQ(refused.verdict(), Verdict::Reject);
  EXPECT_EQ(refused.result.decision.rule, &config.rules[0]);
  EXPECT_EQ(site.counters.settlements(2, observe::Settled::Debt).value(), 1U);
  budget.overdraft = false;
  budget.cost = 1;
  config.rules[0].match.methods = {"NONE"};
  const Asked rest(site, user);
  EXPECT_EQ(rest.verdict(), Verdict::Forward);
  ASSERT_EQ(rest.buffers.fallback.charges().size(), 1U);
  EXPECT_EQ(rest.buffers.fallback.outcomes()[0].remaining, 4U) << "four of nine units were used, and one now";
}

}  // namespace
}  // namespace weir::proxy
