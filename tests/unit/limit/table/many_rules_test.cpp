// A table with as many rules as a configuration may have.
#include "limit/snapshot/snapshot_words.hpp"
#include "unit/limit/snapshot/snapshots.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace weir::limit {
namespace {

constexpr std::size_t kRulesInTable = 1'000;

std::uint64_t version_in(std::string_view snapshot) {
  std::uint64_t version = 0;
  std::memcpy(&version, snapshot.data() + sizeof version, sizeof version);
  return version;
}

class ManyRules : public testing::Test {
 protected:
  ManyRules() {
    for (std::size_t i = 0; i < kRulesInTable; ++i)
      rules_.push_back(rule_of("r" + std::to_string(i), limiter_of(i)));
  }

  [[nodiscard]] const Limiter& limiter_of(std::size_t rule) const {
    return *limiters_[rule % limiters_.size()];
  }

  // Returns a charge of one client under the rule rules_[rule], with `index` as its RuleIndex.
  [[nodiscard]] Charge line(std::size_t rule, std::size_t index, Cost cost = 1) const {
    return {key_of(1, rule), &limiter_of(rule), cost, static_cast<RuleIndex>(index)};
  }

  static void define(KeyTable& table, const std::vector<SavedRule>& rules) {
    std::vector<KeyTable::DefinedRule> defined;
    for (std::size_t i = 0; i < rules.size(); ++i) defined.push_back({static_cast<RuleIndex>(i), rules[i]});
    table.define_rules(defined, kStart);
  }

  // Spends 1 to 40 of 50 units of each rule.
  static Cost spent(std::size_t rule) { return rule % 40 + 1; }
  void spend(KeyTable& table) const {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const Charge one[] = {line(i, i, spent(i))};
      std::array<Outcome, 1> outcomes;
      ASSERT_TRUE(table.charge(one, kStart, outcomes));
      ASSERT_FALSE(outcomes[0].overflow) << i;
    }
  }

  const Limiter log_ = SlidingLog::make({50, 1h}).value();
  const Limiter bucket_ = TokenBucket::make({50, 1h}, 50).value();
  const Limiter window_ = FixedWindow::make({50, 24h}).value();
  const std::array<const Limiter*, 3> limiters_{&log_, &bucket_, &window_};
  std::vector<SavedRule> rules_;
};

TEST_F(ManyRules, EachRuleHasACountOfItsOwn) {
  KeyTable table(20'000);
  define(table, rules_);
  spend(table);
  const auto keys = table.stats().keys_by_rule;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    ASSERT_EQ(table.peek(line(i, i, 0), kStart).remaining, 50 - spent(i)) << i;
    ASSERT_EQ(keys[i], 1U) << i;
  }
  // Refunds the charges of some rules. Each refund must change only the count of its rule.
  for (std::size_t i = 0; i < rules_.size(); i += 7) table.refund(line(i, i, spent(i)), kStart, kStart);
  for (std::size_t i = 0; i < rules_.size(); ++i)
    ASSERT_EQ(table.peek(line(i, i, 0), kStart).remaining, i % 7 == 0 ? 50 : 50 - spent(i)) << i;
}

TEST_F(ManyRules, SnapshotKeepsTheCountOfEveryRule) {
  KeyTable table(20'000), again(20'000);
  define(table, rules_);
  spend(table);
  const auto bytes = written(table, rules_, kStart);
  EXPECT_EQ(version_in(bytes), 7U);
  auto reversed = rules_;  // the new process has the rules in another order
  std::reverse(reversed.begin(), reversed.end());
  define(again, reversed);
  ASSERT_TRUE(check_snapshot(source_of(bytes), reversed));
  const auto restored = restore_snapshot(source_of(bytes), reversed, {kStart}, again);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->keys, rules_.size());
  for (std::size_t i = 0; i < rules_.size(); ++i)
    ASSERT_EQ(again.peek(line(i, rules_.size() - 1 - i, 0), kStart).remaining, 50 - spent(i)) << i;
}

// A reload of a thousand rules gives each rule a second RuleIndex, while requests still use the first one.
TEST_F(ManyRules, ReloadThatChangesAllRulesKeepsTheCountOfEveryRule) {
  const Limiter log = SlidingLog::make({100, 1h}).value();
  const Limiter bucket = TokenBucket::make({100, 1h}, 100).value();
  const Limiter window = FixedWindow::make({100, 24h}).value();
  const std::array<const Limiter*, 3> limiters{&log, &bucket, &window};
  std::vector<SavedRule> before = rules_, after = rules_;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    before[i].variants[0].limiter = &limiter_of(i);
    after[i] = rule_of(rules_[i].name, *limiters[i % 3]);
    after[i].variants[0].limiter = limiters[i % 3];
  }
  KeyTable table(20'000);
  define(table, before);
  spend(table);
  std::vector<KeyTable::DefinedRule> defined;
  for (std::size_t i = 0; i < after.size(); ++i)
    defined.push_back({static_cast<RuleIndex>(kRulesInTable + i), after[i]});
  table.define_rules(defined, kStart);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Charge charge{key_of(1, i), limiters[i % 3], 0, static_cast<RuleIndex>(kRulesInTable + i)};
    ASSERT_EQ(table.peek(charge, kStart).remaining, 2 * (50 - spent(i))) << i;
  }
}

// An earlier weir can read a snapshot of at most 256 rules. It must reject a snapshot of more rules, because
// it could not interpret that snapshot.
TEST_F(ManyRules, SnapshotOfAtMost256RulesCanBeReadByAnEarlierVersion) {
  for (const std::size_t rules : {256U, 257U}) {
    const std::vector<SavedRule> few(rules_.begin(), rules_.begin() + static_cast<std::ptrdiff_t>(rules));
    KeyTable table(5'000), again(5'000);
    for (auto* each : {&table, &again}) define(*each, few);
    const Charge last[] = {line(rules - 1, rules - 1, 30)};
    std::array<Outcome, 1> outcomes;
    ASSERT_TRUE(table.charge(last, kStart, outcomes));
    const auto bytes = written(table, few, kStart);
    EXPECT_EQ(version_in(bytes), rules == 256U ? kNoPenaltyVersion : kSnapshotVersion);
    ASSERT_TRUE(restore_snapshot(source_of(bytes), few, {kStart}, again));
    EXPECT_EQ(again.peek(line(rules - 1, rules - 1, 0), kStart).remaining, 20U);
  }
}

// The memory for penalties is divided among all rules, also among rules with a high RuleIndex.
TEST_F(ManyRules, LastOfAThousandRulesCanHaveAPenalty) {
  const Penalty once{.after = 1, .first = 2h, .grows = 1, .most = 24h, .forget = 24h};
  KeyTable table(20'000);
  define(table, rules_);
  for (const std::size_t rule : {0U, 255U, 256U, 998U, 999U}) {
    auto charge = line(rule, rule, 50);
    charge.penalty = &once;
    std::array<Outcome, 1> outcomes;
    EXPECT_TRUE(table.charge({&charge, 1}, kStart, outcomes));
    EXPECT_FALSE(table.charge({&charge, 1}, kStart, outcomes));
    EXPECT_TRUE(outcomes[0].penalty_begins) << rule;
    EXPECT_EQ(table.peek(charge, kStart).penalty_left, 2h) << rule;
  }
  EXPECT_EQ(table.stats().penalty_keys, 5U);
  EXPECT_EQ(table.stats().violations_lost, 0U);
}

}  // namespace
}  // namespace weir::limit
