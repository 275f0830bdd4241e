// Snapshots of one rule: how its keys, tiers and overflow cells are restored, even if the rule has changed in
// the meantime.
#include "unit/limit/snapshot/snapshots.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/snapshot.hpp"

#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace weir::limit {
namespace {

using ::testing::HasSubstr;

class SnapshotOfOneRule : public testing::Test {
 protected:
  static bool charge(KeyTable& table, const Charge& line, TimePoint now) {
    Outcome out;
    return table.charge({&line, 1}, now, {&out, 1});
  }
  static Restored restored(const std::string& bytes, const std::vector<SavedRule>& rules, TimePoint now,
                           KeyTable& table) {
    EXPECT_TRUE(check_snapshot(source_of(bytes), rules));
    return restore_snapshot(source_of(bytes), rules, {now}, table).value();
  }

  const Limiter daily_ = FixedWindow::make({5, 24h}).value();
  const Limiter hourly_ = token_bucket("3/h", 3);
};

TEST_F(SnapshotOfOneRule, RulesInAnotherOrderKeepTheirKeys) {
  KeyTable table(100);
  EXPECT_TRUE(charge(table, {key_of(1), &daily_, 5, 0}, kStart));
  EXPECT_TRUE(charge(table, {key_of(2), &hourly_, 3, 1}, kStart));
  const auto bytes = written(table, {rule_of("day", daily_), rule_of("hour", hourly_)}, kStart);
  KeyTable again(100);
  const auto result = restored(
      bytes, {rule_of("new", daily_), rule_of("hour", hourly_), rule_of("day", daily_)}, kStart, again);
  EXPECT_EQ(result.keys, 2);
  EXPECT_EQ(again.stats().keys_by_rule[2], 1);
  EXPECT_FALSE(charge(again, {key_of(1), &daily_, 1, 2}, kStart));
  EXPECT_FALSE(charge(again, {key_of(2), &hourly_, 1, 1}, kStart));
}

TEST_F(SnapshotOfOneRule, ChangedRuleStartsWithItsFullLimitUnlessKeysAreConverted) {
  KeyTable table(100);
  EXPECT_TRUE(charge(table, {key_of(1), &daily_, 5, 0}, kStart));
  const auto bytes = written(table, {rule_of("day", daily_)}, kStart);
  const Limiter others[] = {FixedWindow::make({6, 24h}).value(), SlidingLog::make({5, 24h}).value(),
                            token_bucket("5/day", 5), gcra("5/day", 4), FixedWindow::make({5, 25h}).value()};
  for (const auto& other : others) {
    KeyTable again(100);
    const auto result = restored(bytes, {rule_of("day", other)}, kStart, again);
    EXPECT_EQ(result.changed, 1) << describe(other);
    EXPECT_EQ(again.stats().keys, 0);
  }
}

// Restores keys of a rule whose parameters changed between writing and reading.
class SnapshotOfChangedRule : public SnapshotOfOneRule {
 protected:
  static constexpr RuleIndex kFormer = 9;

  static SavedRule rule(std::vector<SavedRule::Variant> variants) {
    SavedRule rule{.name = "r", .variants = std::move(variants)};
    for (auto& variant : rule.variants) {
      variant.numbers = fingerprint(*variant.limiter).lo;
      rule.limiters.push_back(variant.limiter);
    }
    return rule;
  }
  Restored go_on(const KeyTable& before, const SavedRule& was, KeyTable& after, const SavedRule& is) {
    const auto bytes = written(before, {was}, kStart);
    EXPECT_TRUE(check_snapshot(source_of(bytes), std::vector{is}));
    after.define_rule(0, is, kStart);
    const auto adopt = [&](const FormerRule& former) -> std::optional<RuleIndex> {
      former_ = former;
      if (!after.define_former_rule(kFormer, former_.rule)) return std::nullopt;
      return kFormer;
    };
    return restore_snapshot(source_of(bytes), std::vector{is}, {kStart}, after, adopt).value();
  }

  const Limiter twice_ = FixedWindow::make({10, 24h}).value();
  FormerRule former_;  // the table points to the limiters of this rule, so it must outlive the table
};

TEST_F(SnapshotOfChangedRule, ConvertedKeyKeepsTheUsedPercentageOfItsLimit) {
  KeyTable table(100), again(100);
  EXPECT_TRUE(charge(table, {key_of(1), &daily_, 3, 0}, kStart));
  EXPECT_EQ(go_on(table, rule({{0, 0, 0, &daily_}}), again, rule({{0, 0, 0, &twice_}})).keys, 1);
  EXPECT_FALSE(charge(again, {key_of(1), &twice_, 5, 0}, kStart));
  EXPECT_TRUE(charge(again, {key_of(1), &twice_, 4, 0}, kStart));
}

TEST_F(SnapshotOfChangedRule, KeysOfEachTierAreConvertedToTheNewLimitOfTheirTier) {
  const Limiter log = SlidingLog::make({6, 24h}).value(), shorter = SlidingLog::make({3, 24h}).value();
  KeyTable table(100), again(100);
  EXPECT_TRUE(charge(table, {key_of(1), &daily_, 3, 0}, kStart));
  EXPECT_TRUE(charge(table, {key_of(2), &log, 4, 0, true, 2}, kStart));
  EXPECT_TRUE(charge(table, {key_of(3), &hourly_, 1, 0, true, 4}, kStart));
  const auto was = rule({{0, 0, 0, &daily_}, {10, 0, 2, &log}, {20, 0, 4, &hourly_}});
  const auto is = rule({{0, 0, 0, &twice_}, {20, 0, 2, &hourly_}, {10, 0, 4, &shorter}});
  EXPECT_EQ(go_on(table, was, again, is).keys, 3);
  const auto left = [&](std::uint64_t key, const Limiter& limiter, LimiterId limiter_id) {
    return again.peek({key_of(key), &limiter, 1, 0, true, limiter_id}, kStart).remaining;
  };
  EXPECT_EQ(left(1, twice_, 0), 3);
  EXPECT_EQ(left(2, shorter, 4), 0);
  EXPECT_EQ(left(3, hourly_, 2), 1);
}

TEST_F(SnapshotOfChangedRule, RuleWithAnotherAlgorithmStartsWithItsFullLimit) {
  KeyTable table(100), again(100);
  EXPECT_TRUE(charge(table, {key_of(1), &daily_, 3, 0}, kStart));
  const auto restored = go_on(table, rule({{0, 0, 0, &daily_}}), again, rule({{0, 0, 0, &hourly_}}));
  EXPECT_EQ(std::pair(restored.keys, restored.changed), std::pair(std::uint64_t{0}, std::uint64_t{1}));
  EXPECT_TRUE(charge(again, {key_of(1), &hourly_, 3, 0}, kStart));
}

TEST_F(SnapshotOfChangedRule, OverflowCellsOfAChangedRuleAreConverted) {
  KeyTable table(10), again(10);
  std::uint64_t client = 0;
  while (table.stats().overflowed == 0) charge(table, {key_of(client++), &daily_, 2, 0}, kStart);
  go_on(table, rule({{0, 0, 0, &daily_}}), again, rule({{0, 0, 0, &twice_}}));
  const auto outcome = again.peek({key_of(client), &twice_, 1, 0}, kStart);
  EXPECT_TRUE(outcome.overflow);
  EXPECT_EQ(outcome.remaining, 5);
}

TEST_F(SnapshotOfOneRule, SlidingLogsOfAChangedRuleAreNotRestored) {
  const Limiter log = SlidingLog::make({5, 24h}).value();
  KeyTable table(100);
  for (const auto at : {0us, 1us, 2us}) EXPECT_TRUE(charge(table, {key_of(1), &log, 1, 0}, kStart + at));
  KeyTable again(100);
  const auto bytes = written(table, {rule_of("r", log)}, kStart);
  EXPECT_EQ(restored(bytes, {rule_of("r", daily_)}, kStart, again).changed, 1);
  EXPECT_EQ(restored(bytes, {rule_of("other", log)}, kStart, again).changed, 1);
}

TEST_F(SnapshotOfOneRule, AddedTierLeavesTheOtherTiersUnchanged) {
  const SavedRule was{.name = "r", .variants = {{1, 10}, {2, 20}}};
  EXPECT_TRUE((SavedRule{.name = "r", .variants = {{1, 10}, {2, 20}, {3, 30}}}.reads(was)));
  EXPECT_TRUE((SavedRule{.name = "r", .variants = {{2, 20}}}.reads(was)));
  EXPECT_FALSE((SavedRule{.name = "r", .variants = {{1, 10}, {2, 21}}}.reads(was)));
}

TEST_F(SnapshotOfOneRule, ConcurrencyPermitsAreNotRestored) {
  const Limiter in_flight = Concurrency::make(2).value();
  KeyTable table(100);
  EXPECT_TRUE(charge(table, {key_of(1), &in_flight, 2, 0}, kStart));
  const std::vector<SavedRule> rules = {rule_of("r", in_flight)};
  KeyTable again(100);
  EXPECT_EQ(restored(written(table, rules, kStart), rules, kStart, again).keys, 0);
  EXPECT_TRUE(charge(again, {key_of(1), &in_flight, 2, 0}, kStart));
}

TEST_F(SnapshotOfOneRule, KeysThatDoNotFitASmallerTableUseTheOverflowCell) {
  constexpr std::uint64_t kKeys = 2'000;
  KeyTable table(2 * kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) EXPECT_TRUE(charge(table, {key_of(i), &daily_, 5, 0}, kStart));
  const std::vector<SavedRule> rules = {rule_of("day", daily_)};
  KeyTable small(200);
  const auto result = restored(written(table, rules, kStart), rules, kStart, small);
  EXPECT_GE(result.keys, 200);
  EXPECT_EQ(result.keys, small.stats().keys);
  EXPECT_EQ(result.keys + result.left_out, kKeys);
  std::uint64_t admitted = 0;
  for (std::uint64_t i = 0; i < kKeys; ++i)
    admitted += charge(small, {key_of(i), &daily_, 1, 0}, kStart) ? 1 : 0;
  EXPECT_LE(admitted, 5) << "keys without a slot got more than one unused limit together";
}

TEST_F(SnapshotOfOneRule, OverflowCellsAreRestored) {
  KeyTable table(10);
  std::uint64_t client = 0;
  while (table.stats().overflowed == 0) charge(table, {key_of(client++), &daily_, 5, 0}, kStart);
  const std::vector<SavedRule> rules = {rule_of("day", daily_)};
  KeyTable again(10);
  restored(written(table, rules, kStart), rules, kStart, again);
  for (std::uint64_t i = 0; i < client + 100; ++i)
    EXPECT_FALSE(charge(again, {key_of(i), &daily_, 1, 0}, kStart)) << i;
}

// A rule with a sliding log counts WebSocket messages in a token bucket.
TEST_F(SnapshotOfOneRule, MessageCountsOfARuleWithASlidingLogAreRestored) {
  for (const std::uint64_t buckets : {0, 20}) {
    const Limiter log =
        (buckets == 0 ? SlidingLog::make({5, 24h}) : SlidingLog::make({5, 24h}, buckets)).value();
    const std::vector<SavedRule> rules = {
        {.name = "r", .variants = {{1, 10}, {2, 20, 2}}, .limiters = {&log, &hourly_}}};
    const Charge request{key_of(1), &log, 5, 0};
    const Charge messages{key_of(2), &hourly_, 3, 0, true, 2};
    KeyTable table(100);
    EXPECT_TRUE(charge(table, request, kStart));
    EXPECT_TRUE(charge(table, messages, kStart));
    KeyTable again(100);
    EXPECT_EQ(restored(written(table, rules, kStart), rules, kStart, again).keys, 2);
    EXPECT_EQ(again.peek(request, kStart).retry_after, table.peek(request, kStart).retry_after);
    EXPECT_EQ(again.peek(messages, kStart).retry_after, table.peek(messages, kStart).retry_after);
  }
}

TEST_F(SnapshotOfOneRule, RejectsASnapshotWhoseKeyHasAnotherAlgorithmThanItsRule) {
  const Limiter log = SlidingLog::make({5, 24h}).value();
  for (const auto& [of, listed] : {std::pair(&log, &hourly_), std::pair(&hourly_, &log)}) {
    KeyTable table(100);
    EXPECT_TRUE(charge(table, {key_of(1), of, 1, 0}, kStart));
    auto rule = rule_of("r", *of);
    const auto bytes = written(table, {rule}, kStart);
    rule.limiters = {listed};  // `rule.variants` still has the digest of the saved limiter
    const auto checked = check_snapshot(source_of(bytes), std::vector{rule});
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("another algorithm"));
  }
}

// In the new configuration another tier comes first, so the saved tier has another limiter ID.
TEST_F(SnapshotOfOneRule, OverflowCellOfATierIsRestoredToTheTierOfTheSameName) {
  const Limiter small = FixedWindow::make({3, 24h}).value();
  KeyTable table(10);
  std::uint64_t client = 0;
  while (table.stats().overflowed == 0) charge(table, {key_of(client++), &daily_, 1, 0, true, 2}, kStart);
  charge(table, {key_of(client), &small, 2, 0, true, 4}, kStart);
  SavedRule rule{.name = "r", .variants = {{10, 1}, {20, 2, 2}, {30, 3, 4}}, .limiters = {&daily_, &small}};
  const auto bytes = written(table, {rule}, kStart);
  rule.variants = {{10, 1}, {40, 4, 2}, {20, 2, 4}, {30, 3, 6}};
  KeyTable again(10);
  restored(bytes, {rule}, kStart, again);
  const auto left = [&](const Limiter& limiter, LimiterId limiter_id) {
    const auto outcome = again.peek({key_of(client), &limiter, 1, 0, true, limiter_id}, kStart);
    EXPECT_TRUE(outcome.overflow);
    return outcome.remaining;
  };
  EXPECT_EQ(left(daily_, 2), 4) << "a new tier found the key of another tier";
  EXPECT_EQ(left(daily_, 4), 3);
  EXPECT_EQ(left(small, 6), 0);
}

TEST_F(SnapshotOfOneRule, SlidingLogThatIsRestoredWithTooLittleMemoryNeverAdmitsTooMuch) {
  const Limiter log = SlidingLog::make({10'000, 1h}).value();
  KeyTable table(1'000'000);
  for (std::uint64_t client = 0; client < 30; ++client)
    for (int i = 0; i < 9'000; ++i)
      ASSERT_TRUE(charge(table, {key_of(client), &log, 1, 0}, kStart + Duration(i)));
  const std::vector<SavedRule> rules = {rule_of("log", log)};
  KeyTable small(100);
  const auto now = kStart + 1s;
  EXPECT_EQ(restored(written(table, rules, now), rules, now, small).keys, 30);
  EXPECT_GT(small.stats().log_merged, 0);
  for (std::uint64_t client = 0; client < 30; ++client) {
    const Charge line{key_of(client), &log, 1'001, 0};
    EXPECT_FALSE(small.peek(line, now).allowed);
    EXPECT_FALSE(small.peek(line, kStart + 1h - 1us).allowed);
    EXPECT_TRUE(small.peek(line, kStart + 1h + 9ms).allowed);
  }
}

}  // namespace
}  // namespace weir::limit
