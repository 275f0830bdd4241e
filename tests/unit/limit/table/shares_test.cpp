// Each rule has a reserved part of the key table and of the log store. Clients of other rules cannot use up
// this part.
#include "weir/limit/shares.hpp"

#include "limit/table/quota.hpp"
#include "unit/limit/table/key_tables.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace weir::limit {
namespace {

constexpr std::size_t kKeys = 2'000;  // so few keys that the table has one shard

class Shares : public KeyTableTest {
 protected:
  void define_rule(RuleIndex rule, const Limiter& limiter) {
    define_rule(rule, limiter, "rule " + std::to_string(rule));
  }
  void define_rule(RuleIndex rule, const Limiter& limiter, const std::string& name) {
    table_.define_rule(rule,
                       {.name = name,
                        .variants = {{.name = 1, .numbers = 0, .limiter_id = 0, .limiter = &limiter}},
                        .limiters = {&limiter}},
                       kStart);
  }
  // Charges a client of a rule once. Returns true if the client's key has its own slot afterwards.
  bool has_own_cell(std::uint64_t client, RuleIndex rule, const Limiter& limiter, TimePoint now = kStart) {
    charge(table_, {line(client, limiter, rule)}, now);
    return !outcomes_[0].overflow;
  }
  std::uint64_t own_cells(std::uint64_t clients, RuleIndex rule, const Limiter& limiter,
                          TimePoint now = kStart) {
    std::uint64_t own = 0;
    for (std::uint64_t i = 0; i < clients; ++i)
      own += has_own_cell(i + 1'000'000 * rule, rule, limiter, now) ? 1 : 0;
    return own;
  }
  // Charges one client `admissions` times, 1 µs apart.
  void fill_log(std::uint64_t client, RuleIndex rule, const Limiter& limiter, int admissions) {
    for (int i = 0; i < admissions; ++i)
      charge(table_, {line(client, limiter, rule)}, kStart + std::chrono::microseconds(i));
  }
  [[nodiscard]] std::uint64_t keys_of(RuleIndex rule) const { return table_.stats().keys_by_rule[rule]; }

  const Limiter log_ = SlidingLog::make({10'000, 24h}).value();
  KeyTable table_{kKeys};
};

TEST_F(Shares, FloodOfOneRuleLeavesSlotsForNewKeysOfAnotherRule) {
  define_rule(0, three_);
  define_rule(1, one_);
  own_cells(2 * kKeys, 0, three_);
  EXPECT_EQ(own_cells(20, 1, one_), 20);
}

TEST_F(Shares, EveryRuleCanFillItsReservedShareDuringAFlood) {
  for (RuleIndex rule = 0; rule < 10; ++rule) define_rule(rule, three_);
  own_cells(3 * kKeys, 0, three_);
  const auto part = share_of_each(kKeys, 10, 0).keys;
  ASSERT_GE(part, 50);
  for (RuleIndex rule = 1; rule < 10; ++rule) EXPECT_EQ(own_cells(part, rule, three_), part) << rule;
}

TEST_F(Shares, SingleRuleCanUseTheWholeTable) {
  define_rule(0, three_);
  EXPECT_GE(own_cells(2 * kKeys, 0, three_), kKeys);
}

TEST_F(Shares, RuleWithAFloodOfKeysStoresAtLeastFourFifthsOfMaxKeys) {
  for (RuleIndex rule = 0; rule < 4; ++rule) define_rule(rule, three_);
  own_cells(2 * kKeys, 0, three_);
  EXPECT_GE(keys_of(0), kKeys * 4 / 5);
}

TEST_F(Shares, RuleWithAFullShareEvictsRefilledKeysForNewKeys) {
  define_rule(0, one_);
  define_rule(1, one_);
  own_cells(2 * kKeys, 0, one_);
  const auto full = keys_of(0);
  std::uint64_t own = 0;
  // After 3 h, the limits of the first keys have refilled, but these keys are still in their slots.
  for (std::uint64_t i = 0; i < kKeys / 8; ++i)
    own += has_own_cell(500'000 + i, 0, one_, kStart + 3h) ? 1 : 0;
  EXPECT_EQ(own, kKeys / 8);
  EXPECT_LE(keys_of(0), full);
}

TEST_F(Shares, PeekTellsWhetherAChargeWouldUseTheOverflowCell) {
  define_rule(0, three_);
  define_rule(1, three_);
  own_cells(2 * kKeys, 0, three_);
  EXPECT_TRUE(table_.peek(line(600'000, three_, 0), kStart).overflow);
  EXPECT_FALSE(table_.peek(line(600'000, three_, 1), kStart).overflow);
}

TEST_F(Shares, RuleAddedByAReloadGetsItsShareOfTheTable) {
  define_rule(0, three_);
  define_rule(1, three_);
  own_cells(2 * kKeys, 0, three_);
  define_rule(2, three_);
  EXPECT_EQ(own_cells(20, 2, three_), 20);
  EXPECT_EQ(own_cells(20, 1, three_), 20);
}

TEST_F(Shares, OtherRulesCanUseTheTableShareOfARemovedRule) {
  for (RuleIndex rule = 0; rule < 2; ++rule) define_rule(rule, three_);
  own_cells(2 * kKeys, 0, three_);
  const auto newcomer = line(500'000, three_, 0);
  ASSERT_TRUE(table_.peek(newcomer, kStart).overflow);
  table_.forget_rules({1});
  table_.migrate_cells(kStart);
  table_.retire_rules({1});
  EXPECT_FALSE(table_.peek(newcomer, kStart).overflow);
}

TEST_F(Shares, KeysOfAChangedLimitCountInTheTableShareOfTheirRule) {
  define_rule(0, three_);
  define_rule(1, three_, "reloaded");
  define_rule(2, one_, "reloaded");
  own_cells(3 * kKeys, 1, three_);  // charges of requests that began before the reload, with the old index
  const auto held = keys_of(1) + keys_of(2);
  EXPECT_EQ(own_cells(20, 2, one_), 0) << "the changed limit got a second share";
  EXPECT_EQ(keys_of(1) + keys_of(2), held);
  EXPECT_EQ(own_cells(20, 0, three_), 20);
}

TEST_F(Shares, KeysOfAnEarlierLimitCountInTheTableShareOfTheirRule) {
  constexpr RuleIndex kFormer = Quota::kFirst + 44;
  define_rule(0, three_);
  define_rule(1, three_, "restored");
  const SavedRule former{.name = "restored",
                         .variants = {{.name = 1, .numbers = 0, .limiter_id = 0, .limiter = &one_}},
                         .limiters = {&one_}};
  ASSERT_TRUE(table_.define_former_rule(kFormer, former));
  own_cells(3 * kKeys, kFormer, one_);
  EXPECT_EQ(own_cells(20, 1, three_), 0) << "the former rule had a second share";
  EXPECT_EQ(own_cells(20, 0, three_), 20);
}

TEST_F(Shares, SnapshotRestoresAllKeysOfARuleEvenIfItsShareBecameSmaller) {
  define_rule(0, three_);
  own_cells(kKeys, 0, three_);
  std::vector<SavedKey> saved;
  const SavedRule rule{.name = "rule 0", .variants = {}, .limiters = {&three_}};
  table_.visit(kStart, {&rule, 1}, [&](const SavedKey& key) { saved.push_back(key); });
  ASSERT_EQ(saved.size(), kKeys);
  KeyTable next(kKeys);
  for (RuleIndex i = 0; i < 10; ++i)
    next.define_rule(i, {.name = std::to_string(i), .variants = {}, .limiters = {&three_}}, kStart);
  for (const auto& key : saved) ASSERT_TRUE(next.restore(key, 0, kStart));
}

TEST_F(Shares, SlidingLogsOfOneRuleLeaveAnotherRuleItsLogMemory) {
  define_rule(0, log_);
  define_rule(1, log_);
  define_rule(2, three_);
  for (std::uint64_t client = 0; client < 14; ++client) fill_log(client, 0, log_, 10'000);
  ASSERT_GT(table_.stats().log_merged, 0);
  const auto merged = table_.stats().log_merged;
  for (std::uint64_t client = 100; client < 120; ++client) fill_log(client, 1, log_, 500);
  EXPECT_EQ(table_.stats().log_merged, merged) << "older entries of a client were merged into new entries";
  const auto own = share_of_each(kKeys, 3, 2).log_entries;
  fill_log(120, 1, log_, static_cast<int>(std::min(own - 20 * 507, std::size_t{9'000})));
  EXPECT_EQ(table_.stats().log_merged, merged);
}

TEST_F(Shares, SingleRuleWithSlidingLogsCanUseAllLogMemory) {
  define_rule(0, log_);
  define_rule(1, three_);
  for (std::uint64_t client = 0; client < 14; ++client) fill_log(client, 0, log_, 10'000);
  EXPECT_EQ(table_.stats().log_chunks_used, table_.stats().log_chunks);
}

// Makes random charges, refunds, resets, sweeps and reloads. A rule with fewer keys than its reserved part
// must always get a slot for a new key. But sometimes both buckets of a key are full (limit/table/shard.hpp).
// So the test tries several new keys, of which one must get a slot.
TEST_F(Shares, RuleBelowItsShareAlwaysFindsASlotInRandomOperations) {
  const auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<bool> there(8);
  std::size_t rules = 0;
  const auto begin = [&](RuleIndex rule) {
    define_rule(rule, one_);
    there[rule] = true;
    ++rules;
  };
  const auto end = [&](RuleIndex rule, TimePoint now) {
    table_.forget_rules({rule});
    table_.migrate_cells(now);
    table_.retire_rules({rule});
    there[rule] = false;
    --rules;
  };
  for (RuleIndex rule = 0; rule < 3; ++rule) begin(rule);
  TimePoint now = kStart;
  int sure = 0, shared = 0;
  const auto has_slot = [&](RuleIndex rule) {
    return !table_.peek(line(random() % 100'000, one_, rule), now).overflow;
  };
  for (int step = 0; step < 150'000; ++step) {
    now += Duration(random() % 2'000'000);
    if (random() % 10'000 == 0) {
      const auto rule = static_cast<RuleIndex>(random() % there.size());
      if (!there[rule])
        begin(rule);
      else if (rules > 2)
        end(rule, now);
    }
    const auto rule = static_cast<RuleIndex>(random() % 4 == 0 ? random() % there.size() : 0);
    if (!there[rule]) continue;
    const auto asked = line(random() % 100'000, one_, rule);
    const bool within = keys_of(rule) < share_of_each(kKeys, rules, 0).keys;
    if (within) {
      ASSERT_TRUE(has_slot(rule) || has_slot(rule) || has_slot(rule) || has_slot(rule))
          << "rule " << rule << " of " << rules << " at step " << step;
    }
    const bool admitted = charge(table_, {asked}, now);
    (within ? sure : shared) += 1;
    if (admitted && random() % 16 == 0) table_.refund(asked, now, now, outcomes_[0].overflow);
    if (random() % 64 == 0) table_.forget(asked.key, now);
    if (random() % 128 == 0) table_.sweep(now, 4);
  }
  EXPECT_GT(sure, 1'000);
  EXPECT_GT(shared, 1'000);
}

// Compares the quota with counts that the test computes anew each time.
TEST(Quota, CountsOfKeysAgreeWithASimpleModel) {
  const auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::size_t kRules = 6;
  Quota quota;
  QuotaAccounts accounts;
  for (std::size_t i = 0; i < kRules; ++i) accounts.of.push_back(static_cast<RuleIndex>(i));
  quota.share_out(accounts, accounts.rules, {});
  QuotaSplit parts;
  std::array<std::uint32_t, kRules> held{};
  const auto may_take = [&](std::size_t rule) {
    std::map<std::size_t, std::uint32_t> of;
    for (std::size_t i = 0; i < kRules; ++i) of[accounts.of[i]] += held[i];
    const auto part_of = [&](std::size_t account) { return accounts.rules[account] ? parts.part : 0; };
    std::uint64_t beyond = 0;
    for (const auto& [account, count] : of) beyond += count - std::min(count, part_of(account));
    return beyond < parts.shared || of[accounts.of[rule]] < part_of(accounts.of[rule]);
  };
  for (int step = 0; step < 100'000; ++step) {
    const auto rule = random() % kRules;
    switch (random() % 64) {
      case 0:
        accounts.rules.reset();
        for (std::size_t i = 0; i < kRules; ++i) accounts.rules.set(i, random() % 2 == 0);
        for (std::size_t i = 0; i < kRules; ++i) accounts.of[i] = static_cast<RuleIndex>(random() % kRules);
        parts = split(100, 92, accounts.rules.count());
        quota.share_out(accounts, accounts.rules, parts);
        break;
      case 1: {
        const auto some = static_cast<std::uint32_t>(random() % (held[rule] + 1));
        quota.give_back(static_cast<RuleIndex>(rule), some);
        held[rule] -= some;
        break;
      }
      default:
        ASSERT_EQ(quota.may_take(static_cast<RuleIndex>(rule)), may_take(rule)) << "step " << step;
        if (!may_take(rule) && random() % 8 != 0) break;
        quota.take(static_cast<RuleIndex>(rule));
        ++held[rule];
    }
    ASSERT_EQ(quota.by_rule()[rule], held[rule]);
  }
}

TEST(QuotaSplit, SharesOfAllRulesTogetherFitIntoTheSlotsOfTheTable) {
  for (std::size_t places = 4; places < 3'000; places += 7)
    for (std::size_t rules = 2; rules <= kMaxRules; rules += 3) {
      const auto parts = split(places, places - places / 12, rules);
      ASSERT_LE(parts.part * rules + parts.shared, places);
      ASSERT_LE(parts.part * rules, places / 4);
    }
}

}  // namespace
}  // namespace weir::limit
