// A snapshot restores what was saved, and reports any damage.
#include "weir/limit/snapshot.hpp"

#include "unit/limit/random_case.hpp"
#include "unit/limit/snapshot/snapshots.hpp"
#include "unit/limit/traffic.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace weir::limit {
namespace {

using ::testing::HasSubstr;

// A table of a few rules with random limiters, and random traffic of 300 clients.
class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    while (cases_.size() < 6) {
      const auto made = dice_.limiter();
      // These limiters are random. An exact sliding log and a sliding log with buckets follow below.
      cases_.push_back(made);
    }
    cases_.push_back({Algorithm::LoneLog, {50, 1h}, 50, base::kForever, SlidingLog::make({50, 1h}).value()});
    cases_.push_back(
        {Algorithm::BucketedWindow, {90, 1h}, 90, base::kForever, SlidingLog::make({90, 1h}, 20).value()});
    for (const auto& made : cases_)
      rules_.push_back(rule_of("r" + std::to_string(rules_.size()), made.limiter));
  }

  void charge_at_random(KeyTable& table, int times) {
    for (int i = 0; i < times; ++i) {
      const auto rule = static_cast<RuleIndex>(dice_.between(0, cases_.size() - 1));
      const Charge line{key_of(dice_.between(0, 300), rule), &cases_[rule].limiter, dice_.cost(cases_[rule]),
                        rule};
      Outcome out;
      table.charge({&line, 1}, now_, {&out, 1});
      if (dice_.one_in(10)) now_ += Duration(dice_.magnitude(1, 60'000'000));
    }
  }

  Dice dice_{new_seed()};
  std::vector<Case> cases_;
  std::vector<SavedRule> rules_;
  TimePoint now_ = kStart;
};

class RandomTables : public SnapshotTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(RandomSeeds, RandomTables, testing::Range(0, 20));

TEST_P(RandomTables, RestoredTableGivesTheSameOutcomesAsTheSavedTable) {
  KeyTable table(5'000);
  charge_at_random(table, 5'000);
  const auto bytes = written(table, rules_, now_);
  const auto checked = check_snapshot(source_of(bytes), rules_);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->saved_at, now_);
  EXPECT_EQ(checked->names.k0, kNames.k0);
  EXPECT_EQ(checked->names.k1, kNames.k1);

  KeyTable again(5'000);
  const auto restored = restore_snapshot(source_of(bytes), rules_, {now_}, again);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->keys, checked->keys);
  EXPECT_EQ(restored->drained + restored->changed + restored->left_out, 0);
  EXPECT_EQ(again.stats().log_chunks_used > 0, table.stats().log_chunks_used > 0);
  EXPECT_EQ(keys_of(again, rules_, now_), keys_of(table, rules_, now_));
  for (int i = 0; i < 3'000; ++i) {
    const auto rule = static_cast<RuleIndex>(dice_.between(0, cases_.size() - 1));
    const Charge line{key_of(dice_.between(0, 300), rule), &cases_[rule].limiter, dice_.cost(cases_[rule]),
                      rule};
    Outcome was, is;
    table.charge({&line, 1}, now_, {&was, 1});
    again.charge({&line, 1}, now_, {&is, 1});
    ASSERT_EQ(was, is) << cases_[rule];
    now_ += Duration(dice_.magnitude(1, 60'000'000));
  }
}

// A table with one rule that has sliding logs. Reloads change the parameters of this rule while charges are
// under way. These charges are refunded or settled later.
class ReloadedLogs : public SnapshotTest, public testing::WithParamInterface<int> {
 protected:
  ReloadedLogs() { rules_.clear(); }

  void reload() {
    const Rate rate{dice_.magnitude(1, 200), Duration(dice_.between(1, 100) * 1'000'000)};
    const auto limiter = GetParam() % 2 != 0 ? SlidingLog::make(rate) : SlidingLog::make(rate, 20);
    limiters_.push_back(std::make_unique<Limiter>(limiter.value()));
    rules_.push_back({.name = "r", .variants = {{.name = 1, .numbers = fingerprint(*limiters_.back()).lo}}});
    rules_.back().variants.front().limiter = limiters_.back().get();
    rules_.back().limiters = {limiters_.back().get()};
    table_.define_rule(static_cast<RuleIndex>(rules_.size() - 1), rules_.back(), now_);
  }

  void charge() {
    const auto rule = static_cast<RuleIndex>(rules_.size() - 1);
    const Charge line{key_of(dice_.between(0, 20), 0), limiters_[rule].get(), dice_.magnitude(1, 40), rule};
    Outcome out;
    if (table_.charge({&line, 1}, now_, {&out, 1})) under_way_.push_back({line, now_});
  }

  // Refunds or settles a random charge that is under way.
  void end_one() {
    if (under_way_.empty()) return;
    const auto ended =
        under_way_.begin() + static_cast<std::ptrdiff_t>(dice_.between(0, under_way_.size() - 1));
    const auto& [line, charged_at] = *ended;
    if (dice_.one_in(3))
      table_.refund(line, charged_at, now_);
    else
      table_.settle(line, {charged_at, dice_.magnitude(1, 80), now_});
    under_way_.erase(ended);
  }

  KeyTable table_{1'000};
  std::vector<std::unique_ptr<Limiter>> limiters_;
  std::vector<std::pair<Charge, TimePoint>> under_way_;
};
INSTANTIATE_TEST_SUITE_P(RandomSeeds, ReloadedLogs, testing::Range(0, 100));

TEST_P(ReloadedLogs, SnapshotAfterReloadsThatChangedSlidingLogsIsValid) {
  for (int i = 0; i < 2'000; ++i) {
    if (i % 100 == 0) reload();
    dice_.one_in(2) ? charge() : end_one();
    if (dice_.one_in(5)) now_ += Duration(dice_.magnitude(1, 10'000'000));
    if (i % 20 != 0) continue;
    const auto bytes = written(table_, rules_, now_);
    const auto checked = check_snapshot(source_of(bytes), rules_);
    ASSERT_TRUE(checked) << "after " << i << ": " << checked.error().message;
  }
}

TEST_F(SnapshotTest, KeysWhoseLimitRefilledSinceTheSaveAreNotRestored) {
  KeyTable table(5'000);
  charge_at_random(table, 2'000);
  const auto all = keys_of(table, rules_, now_);
  const auto then = now_ + 1h;
  const auto live = keys_of(table, rules_, then);
  KeyTable again(5'000);
  const auto bytes = written(table, rules_, now_);
  const auto restored = restore_snapshot(source_of(bytes), rules_, {then}, again);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->drained, all.size() - live.size());
  EXPECT_EQ(keys_of(again, rules_, then), live);
}

TEST_F(SnapshotTest, RejectsASnapshotTruncatedAtAnyByte) {
  KeyTable table(1'000);
  charge_at_random(table, 300);
  const auto bytes = written(table, rules_, now_);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto checked = check_snapshot(source_of(std::string_view(bytes).substr(0, length)), rules_);
    ASSERT_FALSE(checked) << length << " of " << bytes.size();
    ASSERT_THAT(checked.error().message, testing::AnyOf(HasSubstr("ends early"), HasSubstr("is damaged")));
  }
  EXPECT_FALSE(check_snapshot(source_of(bytes + "x"), rules_));
  EXPECT_FALSE(check_snapshot(source_of(bytes + bytes), rules_));
}

TEST_F(SnapshotTest, RejectsASnapshotWithAnyChangedByte) {
  KeyTable table(1'000);
  charge_at_random(table, 300);
  const auto bytes = written(table, rules_, now_);
  for (int i = 0; i < 10'000; ++i) {
    auto damaged = bytes;
    const auto flips = dice_.between(1, 3);
    for (std::uint64_t flip = 0; flip < flips; ++flip)
      damaged[dice_.between(0, bytes.size() - 1)] ^= static_cast<char>(1 << dice_.between(0, 7));
    if (damaged == bytes) continue;
    ASSERT_FALSE(check_snapshot(source_of(damaged), rules_));
  }
}

TEST_F(SnapshotTest, RejectsASnapshotOfAnotherVersion) {
  auto bytes = written(KeyTable(10), rules_, now_);
  bytes[8] = 1;
  const auto checked = check_snapshot(source_of(bytes), rules_);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "has version 1, but this weir reads 4 to 7");
  EXPECT_EQ(check_snapshot(source_of("[state]\nmemory = 1\n"), rules_).error().message, "is not a snapshot");
}

}  // namespace
}  // namespace weir::limit
