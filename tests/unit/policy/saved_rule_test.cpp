// Tests which changes of a rule leave the saved state of its keys valid.
#include "weir/policy/saved_rule.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

limit::Limiter bucket_of(std::uint64_t burst) {
  return limit::TokenBucket::make({10, std::chrono::seconds(1)}, burst).value();
}

class SavedRuleTest : public testing::Test {
 protected:
  // Returns true if the changed rule can use the state of keys that the rule saved before the change.
  [[nodiscard]] bool reads() const {
    const std::vector<Rule> was = {was_}, is = {is_};
    return saved_rules(is)[0].reads(saved_rules(was)[0]);
  }

  Rule was_{.name = "r", .limiter = bucket_of(5)};
  Rule is_ = was_;
};

TEST_F(SavedRuleTest, KeysOfTheSameRuleAreRestored) {
  EXPECT_TRUE(reads());
}

TEST_F(SavedRuleTest, KeysAreRestoredAfterChangesThatDoNotAffectTheLimit) {
  is_.mode = Mode::Shadow;
  is_.cost = 3;
  is_.index = 7;
  EXPECT_TRUE(reads());
}

TEST_F(SavedRuleTest, KeysOfAnotherLimitAreNotRestored) {
  is_.limiter = bucket_of(6);
  EXPECT_FALSE(reads());
}

TEST_F(SavedRuleTest, KeysAreNotRestoredIfTheEnforcedLimitChanged) {
  was_.soft = bucket_of(6);
  is_.local_share = bucket_of(6);
  EXPECT_FALSE(reads());
  is_ = was_;
  is_.store = Store::Redis;
  EXPECT_FALSE(reads());
}

TEST_F(SavedRuleTest, KeysAreRestoredAfterTiersWereAddedOrRemoved) {
  was_.tiers.push_back({.tier = "free", .limiter = bucket_of(1)});
  EXPECT_TRUE(reads());
  is_.tiers = {{.tier = "pro", .limiter = bucket_of(9)}, was_.tiers[0]};
  EXPECT_TRUE(reads());
  is_.tiers[1].limiter = bucket_of(2);
  EXPECT_FALSE(reads());
}

Variant at(std::string_view path, std::uint64_t count) {
  Variant variant{.tier = {}, .limiter = bucket_of(count)};
  variant.match.path = PathMatch::parse(path).value();
  return variant;
}

TEST_F(SavedRuleTest, OverrideIsRecognisedByItsConditions) {
  was_.overrides = {at("/a", 1), at("/b", 2)};
  is_.overrides = {at("/b", 2)};
  EXPECT_TRUE(reads());
  is_.overrides = {at("/new", 3), at("/b", 2), at("/a", 1)};
  EXPECT_TRUE(reads());
  is_.overrides = {at("/a", 2), at("/b", 2)};
  EXPECT_FALSE(reads());
}

TEST_F(SavedRuleTest, OverridesWithTheSameConditionsAreDistinguishedByTheirOrder) {
  was_.overrides = {at("/a", 1), at("/a", 2)};
  is_.overrides = {at("/a", 1), at("/b", 5), at("/a", 2)};
  EXPECT_TRUE(reads());
  is_.overrides = {at("/a", 2)};
  EXPECT_FALSE(reads());
}

// Overflow cells (the states that keys outside the table share) and snapshots use the limiter ID to
// distinguish the limiters of a rule.
TEST_F(SavedRuleTest, LimitersOfARuleThatCountSeparatelyHaveDifferentLimiterIds) {
  is_.elastic = Elastic{.limiter = bucket_of(50), .while_load_below = 0.5};
  is_.overrides = {{.tier = {}, .limiter = bucket_of(1)}};
  is_.tiers = {{.tier = "pro", .limiter = bucket_of(9), .elastic = is_.elastic}};
  const std::vector<Rule> is = {is_};
  std::vector<limit::LimiterId> ledgers;
  const auto saved = saved_rules(is);
  for (const auto& variant : saved[0].variants) ledgers.push_back(variant.limiter_id);
  EXPECT_EQ(ledgers, (std::vector<limit::LimiterId>{0, 1, 2, 4, 5}));
}

TEST_F(SavedRuleTest, KeysAreRestoredIfAnElasticLimitIsAddedButNotIfItChanges) {
  is_.elastic = Elastic{.limiter = bucket_of(50), .while_load_below = 0.5};
  EXPECT_TRUE(reads());
  was_.elastic = Elastic{.limiter = bucket_of(40), .while_load_below = 0.5};
  EXPECT_FALSE(reads());
}

TEST_F(SavedRuleTest, NumberOfBitsThatASlidingLogUsesForACostIsSaved) {
  const std::vector<Rule> rules = {
      was_,
      {.name = "log", .limiter = limit::SlidingLog::make({5, std::chrono::hours(1)}).value()},
      {.name = "window", .limiter = limit::SlidingLog::make({5, std::chrono::hours(1)}, 10).value()}};
  const auto saved = saved_rules(rules);
  EXPECT_EQ(saved[0].log_cost_bits(), 0);
  EXPECT_EQ(saved[1].log_cost_bits(), 14);
  EXPECT_EQ(saved[2].log_cost_bits(), 32);
}

}  // namespace
}  // namespace weir::policy
