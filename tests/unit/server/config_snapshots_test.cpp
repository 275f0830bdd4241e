// Tests which rule numbers, limiters and server groups a reload keeps, and when unused rule numbers become
// free.
#include "server/config_snapshots.hpp"

#include "unit/config/configuration.hpp"

#include "weir/limit/foreign_permits.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace weir::server::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A configuration snapshot that a request or the workers use.
using Held = std::shared_ptr<const proxy::ConfigSnapshot>;

std::string rule(const std::string& name, const std::string& numbers) {
  return "[[rule]]\nname = \"" + name + "\"\nkey = [\"ip\"]\n" + numbers + "\n";
}

const std::string kFive = "limit = \"5/day\"\nalgorithm = \"fixed_window\"";
const std::string kNine = "limit = \"9/day\"\nalgorithm = \"fixed_window\"";
const std::string kLog = "limit = \"5/day\"\nalgorithm = \"sliding_log\"";
const std::string kTwoAtOnce = "limit = 2\nalgorithm = \"concurrency\"";
const std::string kThreeAtOnce = "limit = 3\nalgorithm = \"concurrency\"";

class ConfigSnapshotsTest : public testing::Test {
 protected:
  Held reload(const std::string& rules, const std::string& servers = "\"127.0.0.1:9001\"") {
    const auto draft = make(rules, servers).value();
    changes_ = draft.changes;
    auto held = config_snapshots_.activate(draft);
    table_.migrate_cells(clock_.now());
    return held;
  }
  base::Result<ConfigSnapshots::Draft> make(const std::string& rules,
                                            const std::string& servers = "\"127.0.0.1:9001\"") {
    const auto settings = config::parse_settings(
        "[[listener]]\naddress = \"127.0.0.1:8080\"\n"
        "[[upstream]]\nname = \"api\"\nservers = [" +
            servers +
            "]\n"
            "[[route]]\nupstream = \"api\"\n" +
            rules,
        config::test::kFile);
    config_snapshots_.clean_up({}, elsewhere_.rules());
    return config_snapshots_.make(
        settings, {{settings.upstreams[0], *upstream::resolve_servers(settings.upstreams[0])}}, {});
  }
  // Releases a configuration snapshot, as the last request that uses it does.
  void end(Held& held) {
    held.reset();
    control_.restart();
    control_.poll();
    config_snapshots_.clean_up({}, elsewhere_.rules());
  }
  static const policy::Rule& only(const Held& held) { return held->config.rules.front(); }
  // Charges a client's key, so that the key table stores the key.
  bool charge(const Held& held, std::uint64_t client = 1) {
    const limit::Charge line{{client, client}, only(held).limiter.get(), 1, only(held).rule_number};
    limit::Outcome outcome;
    return table_.charge({&line, 1}, clock_.now(), {&outcome, 1});
  }

  net::asio::io_context control_;
  limit::KeyTable table_{1000};
  limit::ForeignPermits elsewhere_{table_};
  net::Clock clock_;
  log::Log log_{log::LogLevel::Off};
  int gone_ = 0;
  ConfigSnapshots config_snapshots_{control_, table_, clock_, log_, [this] { ++gone_; }};
  std::vector<std::string> changes_;
};

TEST_F(ConfigSnapshotsTest, UnchangedRulesAndUpstreamsAreReusedAfterAReload) {
  const auto first = reload(rule("a", kFive));
  const auto second = reload(rule("b", kFive) + rule("a", kFive));
  const auto& is = second->config.rules[1];
  EXPECT_EQ(is.rule_number, only(first).rule_number);
  EXPECT_EQ(is.index, only(first).index);
  EXPECT_EQ(is.limiter.get(), only(first).limiter.get());
  EXPECT_NE(second->config.rules[0].rule_number, is.rule_number);
  EXPECT_EQ(second->server_groups, first->server_groups);
  EXPECT_EQ(changes_, std::vector<std::string>{"rule \"b\" added"});
}

// Returns 17 rules with 101 limits each: the rule's own limit and 100 overrides. Because of `adapt`, weir
// makes 20 limiters (limit::kWholeFactor) for each limit.
std::string many_limits(int first) {
  std::string text;
  for (int i = 0; i < 17; ++i) {
    const auto limit = [&](int number) {
      return "limit = \"" + std::to_string(first + 1000 * i + number) + "/min\"";
    };
    text +=
        rule("r" + std::to_string(i), limit(0) + "\nadapt = { upstream = \"api\", errors_above = \"5%\" }");
    text += "overrides = [";
    for (int j = 1; j <= 100; ++j)
      text += "{ match = { query = { q = \"" + std::to_string(j) + "\" } }, " + limit(j) + " }, ";
    text += "]\n";
  }
  return text;
}

TEST_F(ConfigSnapshotsTest, RejectedConfigurationDoesNotCountTowardsTheMaximumNumberOfLimits) {
  reload(many_limits(100'000));
  const auto had = config_snapshots_.limits();
  EXPECT_EQ(had, 17U * 101 * 20);
  const auto refused = make(many_limits(200'000));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("too many different limits since weir started"));
  EXPECT_EQ(config_snapshots_.limits(), had);
  reload(rule("a", kFive));
  EXPECT_EQ(config_snapshots_.limits(), had + 1) << "a smaller configuration still fits";
}

TEST_F(ConfigSnapshotsTest, ReloadReportsThatARuleWithAnotherAlignKeepsItsCounts) {
  reload(rule("a", "limit = \"10/day\"\nalgorithm = \"fixed_window\"\nalign = \"day\""));
  reload(rule("a", "limit = \"700/week\"\nalgorithm = \"fixed_window\"\nalign = \"week\""));
  EXPECT_EQ(changes_, std::vector<std::string>{
                          "rule \"a\" has another align: its clients keep the count that they have used"});
}

TEST_F(ConfigSnapshotsTest, RulesAreKeptIfTheServersOfAnUpstreamChange) {
  const auto first = reload(rule("a", kFive));
  auto settings = first->server_groups[0]->settings();
  settings.servers.push_back({.address = {"127.0.0.1", 9002, {}}});
  const auto draft = config_snapshots_.with_servers({settings, *upstream::resolve_servers(settings)});
  ASSERT_TRUE(draft);
  const auto second = config_snapshots_.activate(*draft);
  EXPECT_EQ(second->server_groups[0]->size(), 2U);
  EXPECT_EQ(second->config.upstreams[0], settings);
  EXPECT_EQ(only(second).rule_number, only(first).rule_number);
  EXPECT_EQ(first->server_groups[0]->size(), 1U) << "requests of before keep their servers";
}

TEST_F(ConfigSnapshotsTest, ChangedServersCreateANewServerGroup) {
  const auto first = reload("");
  const auto second = reload("", "\"127.0.0.1:9002\"");
  EXPECT_NE(second->server_groups, first->server_groups);
  EXPECT_EQ(changes_, std::vector<std::string>{"upstream \"api\" changed"});
}

TEST_F(ConfigSnapshotsTest, RuleThatGetsAnEarlierLimitBackGetsTheEarlierRuleNumberBack) {
  const auto first = reload(rule("a", kFive));
  const auto second = reload(rule("a", kNine));
  EXPECT_THAT(changes_, Contains(HasSubstr("keep the share")));
  EXPECT_NE(only(second).rule_number, only(first).rule_number);
  EXPECT_EQ(only(second).index, only(first).index) << "counters belong to the name";
  EXPECT_EQ(only(reload(rule("a", kFive))).rule_number, only(first).rule_number);
}

// The rule gets its first algorithm back, but its keys start with an empty counter. Late refunds of charges
// under the first configuration must not change this counter.
TEST_F(ConfigSnapshotsTest, RuleThatGetsAnEarlierAlgorithmBackStartsWithAnEmptyCounter) {
  const auto first = reload(rule("a", kFive));
  const auto second = reload(rule("a", kLog));
  EXPECT_THAT(changes_, Contains(HasSubstr("start with an empty counter")));
  const auto third = reload(rule("a", kFive));
  EXPECT_THAT(changes_, Contains(HasSubstr("start with an empty counter")));
  EXPECT_NE(only(third).rule_number, only(first).rule_number);
  EXPECT_NE(only(third).rule_number, only(second).rule_number);
  const auto fourth = reload(rule("a", kLog));
  EXPECT_NE(only(fourth).rule_number, only(second).rule_number);
  EXPECT_EQ(only(reload(rule("a", kLog))).rule_number, only(fourth).rule_number);
}

TEST_F(ConfigSnapshotsTest, RuleKeepsItsNumberIfOnlyItsConcurrencyLimitChanges) {
  const auto first = reload(rule("a", kTwoAtOnce));
  EXPECT_EQ(only(reload(rule("a", kThreeAtOnce))).rule_number, only(first).rule_number);
  EXPECT_EQ(only(reload(rule("a", kTwoAtOnce))).rule_number, only(first).rule_number);
  reload(rule("a", kFive));
  EXPECT_NE(only(reload(rule("a", kTwoAtOnce))).rule_number, only(first).rule_number);
}

TEST_F(ConfigSnapshotsTest, RemovedRuleIsForgottenWhenItsLastRequestEnds) {
  auto first = reload(rule("a", kFive));
  ASSERT_TRUE(charge(first));
  const auto second = reload("");
  EXPECT_EQ(config_snapshots_.count(), 2);
  EXPECT_EQ(table_.stats().keys, 1) << "a request is in progress";
  end(first);
  EXPECT_EQ(gone_, 1);
  EXPECT_EQ(config_snapshots_.count(), 1);
  EXPECT_EQ(table_.stats().keys, 0);
  const auto third = reload(rule("other", kFive));
  EXPECT_EQ(only(third).rule_number, 0) << "the number of the rule is free";
  EXPECT_EQ(only(third).index, 0);
}

TEST_F(ConfigSnapshotsTest, RuleThatIsAddedAgainDuringARequestKeepsItsCounter) {
  const auto first = reload(rule("a", kFive));
  ASSERT_TRUE(charge(first));
  reload("");
  const auto third = reload(rule("a", kFive));
  EXPECT_EQ(only(third).rule_number, only(first).rule_number);
  EXPECT_EQ(table_.stats().keys, 1);
}

// The old process of an upgrade may still release permits of the removed rule. These releases must not change
// a later rule.
TEST_F(ConfigSnapshotsTest, RemovedRuleIsKeptWhileAnotherProcessHoldsItsPermits) {
  auto first = reload(rule("a", kTwoAtOnce));
  elsewhere_.change({.key = {1, 1}, .limiter = only(first).limiter.get(), .rule = only(first).rule_number}, 2,
                    clock_.now());
  const auto second = reload("");
  end(first);
  EXPECT_EQ(table_.stats().keys, 1);
  const auto third = reload(rule("a", kTwoAtOnce));
  EXPECT_FALSE(charge(third)) << "both permits are still held";
  elsewhere_.release_all(clock_.now());
  EXPECT_THAT(elsewhere_.rules(), IsEmpty());
  EXPECT_TRUE(charge(third));
}

TEST_F(ConfigSnapshotsTest, KeysOfAChangedLimitGetItsNewRuleNumberAndTheOldNumberIsFreed) {
  auto first = reload(rule("a", kFive));
  ASSERT_TRUE(charge(first));
  const auto second = reload(rule("a", kNine));
  EXPECT_EQ(table_.stats().keys_by_rule[only(second).rule_number], 1);
  end(first);
  const auto third = reload(rule("a", kNine) + rule("b", kFive));
  EXPECT_EQ(only(third).rule_number, only(second).rule_number);
  EXPECT_EQ(third->config.rules[1].rule_number, 0);
}

TEST_F(ConfigSnapshotsTest, KeysOfAFormerAlgorithmAreDeletedAtOnce) {
  const auto first = reload(rule("a", kTwoAtOnce));
  ASSERT_TRUE(charge(first));
  reload(rule("a", kLog));
  EXPECT_EQ(table_.stats().keys, 0) << "even while a request is in progress";
}

// Each request in progress uses its own configuration snapshot. Each change of the algorithm uses another
// rule number.
TEST_F(ConfigSnapshotsTest, ErrorSaysThatAllRuleNumbersAreInUse) {
  std::vector<Held> under_way;
  const auto settings = [](const std::string& numbers) {
    return config::parse_settings(config::test::with(rule("a", numbers)), config::test::kFile);
  };
  const auto make = [&](const std::string& numbers) {
    const auto read = settings(numbers);
    return config_snapshots_.make(read, {{read.upstreams[0], *upstream::resolve_servers(read.upstreams[0])}},
                                  {});
  };
  for (std::size_t i = 0; i + 1 < limit::kMaxRules; ++i) {
    const auto draft = make(i % 2 == 0 ? kFive : kLog);
    ASSERT_TRUE(draft) << i << ": " << draft.error().message;
    under_way.push_back(config_snapshots_.activate(*draft));
  }
  const auto refused = make(limit::kMaxRules % 2 == 0 ? kLog : kFive);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("too many rules"));
  under_way.clear();
  control_.poll();
  config_snapshots_.clean_up({});
  EXPECT_TRUE(make(kLog));
}

TEST_F(ConfigSnapshotsTest, ReloadReportsChangedAdaptSettingsOfARule) {
  const auto adapting = [](const std::string& floor) {
    return rule("r",
                kFive + "\nadapt = { upstream = \"api\", errors_above = \"5%\", floor = \"" + floor + "\" }");
  };
  auto first = reload(adapting("20%"));
  EXPECT_EQ(first->config.factors, &config_snapshots_.factors());
  const auto* half = only(first).scaled[9].get();
  auto same = reload(adapting("20%"));
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_EQ(only(same).scaled[9].get(), half) << "an unchanged rule keeps its limiters";
  auto other = reload(adapting("50%"));
  EXPECT_THAT(changes_, Contains("rule \"r\" has another adapt: it starts with its whole limit"));
}

}  // namespace
}  // namespace weir::server::test
