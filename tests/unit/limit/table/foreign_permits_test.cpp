// One table reports its permits and another table counts these permits, as two processes do during an
// upgrade.
#include "weir/limit/foreign_permits.hpp"

#include "unit/limit/table/key_tables.hpp"

#include "weir/limit/permit.hpp"

#include <list>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

const Limiter kThree = Concurrency::make(3).value();
const Limiter kAdaptive = AdaptiveConcurrency::make(2, 8).value();
constexpr RuleIndex kFixedRule = 0, kAdaptiveRule = 1, kBucketRule = 2;

class ForeignPermitsTest : public KeyTableTest {
 protected:
  const std::vector<SavedRule> rules_{
      {.name = "fixed", .variants = {}, .limiters = {&one_, &kThree}},
      {.name = "adaptive", .variants = {}, .limiters = {&kAdaptive}},
      {.name = "bucket", .variants = {}, .limiters = {&three_}},
  };
  Charge fixed(std::uint64_t client, Cost cost = 1) const { return line(client, kThree, kFixedRule, cost); }

  // Makes `elsewhere_` count the permits of `here_` in `there_`: those held now, and every later change.
  void follow() {
    here_.watch_permits(rules_, [this](const PermitDelta& held) {
      const Limiter& limiter = held.rule == kAdaptiveRule ? kAdaptive : kThree;
      elsewhere_.change({.key = held.key, .limiter = &limiter, .rule = held.rule}, held.units, kStart);
    });
  }

  KeyTable here_{1000}, there_{1000};
  ForeignPermits elsewhere_{there_};
};

TEST_F(ForeignPermitsTest, TwoProcessesTogetherStayWithinTheLimit) {
  ASSERT_TRUE(charge(here_, {fixed(1, 2)}, kStart));
  follow();
  EXPECT_EQ(elsewhere_.units(), 2u);
  EXPECT_TRUE(charge(there_, {fixed(1)}, kStart));
  EXPECT_FALSE(charge(there_, {fixed(1)}, kStart));
  EXPECT_TRUE(charge(there_, {fixed(2, 3)}, kStart)) << "another key has its own limit";

  here_.release(fixed(1, 2), kStart, {});
  EXPECT_EQ(elsewhere_.units(), 0u);
  EXPECT_TRUE(charge(there_, {fixed(1, 2)}, kStart));
  EXPECT_FALSE(charge(there_, {fixed(1)}, kStart));
}

TEST_F(ForeignPermitsTest, OtherProcessLearnsOfPermitsTakenAfterItBeganToListen) {
  follow();
  ASSERT_TRUE(charge(there_, {fixed(1, 2)}, kStart));
  ASSERT_TRUE(charge(here_, {fixed(1, 3)}, kStart)) << "this process does not know the permits of the other";
  EXPECT_EQ(elsewhere_.units(), 3u) << "both processes together exceed the limit";
  here_.release(fixed(1, 3), kStart, {});
  EXPECT_TRUE(charge(there_, {fixed(1)}, kStart));
}

TEST_F(ForeignPermitsTest, AllPermitsOfAnEndedProcessAreReleased) {
  ASSERT_TRUE(charge(here_, {fixed(1, 3), line(2, kAdaptive, kAdaptiveRule, 2)}, kStart));
  follow();
  EXPECT_EQ(elsewhere_.units(), 5u);
  EXPECT_EQ(there_.stats().keys, 2u);
  elsewhere_.release_all(kStart);
  EXPECT_EQ(elsewhere_.units(), 0u);
  EXPECT_TRUE(charge(there_, {fixed(1, 3)}, kStart));
  EXPECT_TRUE(charge(there_, {line(2, kAdaptive, kAdaptiveRule, 4)}, kStart));
}

TEST_F(ForeignPermitsTest, OtherProcessLearnsOnlyOfChargesOfConcurrencyLimits) {
  ASSERT_TRUE(charge(here_, {line(1, three_, kBucketRule), line(2, one_, kFixedRule)}, kStart));
  std::vector<PermitDelta> reported;
  here_.watch_permits(rules_, [&](const PermitDelta& held) { reported.push_back(held); });
  ASSERT_TRUE(charge(here_, {line(1, three_, kBucketRule), fixed(3)}, kStart));
  ASSERT_FALSE(charge(here_, {fixed(3, 3)}, kStart));
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].key, fixed(3).key);
  EXPECT_EQ(std::pair(reported[0].rule, reported[0].units), std::pair(kFixedRule, std::int64_t{1}));
  here_.unwatch_permits();
  here_.release(fixed(3), kStart, {});
  EXPECT_EQ(reported.size(), 1u);
}

TEST_F(ForeignPermitsTest, OtherProcessCannotReleaseMorePermitsThanItReported) {
  ASSERT_TRUE(charge(there_, {fixed(1, 2)}, kStart));
  elsewhere_.change(fixed(1), 1, kStart);
  elsewhere_.change(fixed(1), -3, kStart);
  EXPECT_EQ(elsewhere_.units(), 0u);
  EXPECT_TRUE(charge(there_, {fixed(1)}, kStart));
  EXPECT_FALSE(charge(there_, {fixed(1)}, kStart)) << "the two permits are still held";
}

TEST_F(ForeignPermitsTest, PermitsOfAnotherProcessCountInTheOverflowCellOfAFullTable) {
  KeyTable full(1);
  ASSERT_GT(fill(full, three_), 0u);
  ForeignPermits elsewhere(full);
  elsewhere.change(fixed(1'000'001), 2, kStart);
  EXPECT_TRUE(charge(full, {fixed(1'000'002)}, kStart));
  EXPECT_FALSE(charge(full, {fixed(1'000'002)}, kStart));
  elsewhere.release_all(kStart);
  EXPECT_TRUE(charge(full, {fixed(1'000'002, 2)}, kStart));
}

// A bound (docs/limitations.md, "Shared cells"): the change that another process reports does not name the
// limiter of its key, so the charge names the rule's own limiter.
TEST_F(ForeignPermitsTest, PermitWithoutASlotIsNotCountedInTheOverflowCellOfATier) {
  constexpr LimiterId kTier = 7;
  KeyTable full(1);
  ASSERT_GT(fill(full, three_), 0u);
  ForeignPermits elsewhere(full);
  auto of_tier = fixed(1'000'001);
  elsewhere.change(of_tier, 3, kStart);
  EXPECT_FALSE(full.peek(of_tier, kStart).allowed)
      << "the permits count in the cell of the rule's own limiter";
  of_tier.limiter_id = kTier;
  ASSERT_TRUE(full.peek(of_tier, kStart).overflow);
  EXPECT_TRUE(full.peek(of_tier, kStart).allowed);
}

// Workers begin and end requests while the main thread starts to watch permits.
TEST_F(ForeignPermitsTest, ReportedPermitsAddUpWhileWorkersTakeAndReleasePermits) {
  const Limiter many = Concurrency::make(1'000'000).value();
  const std::vector<SavedRule> rules{{.name = "many", .variants = {}, .limiters = {&many}}};
  KeyTable table(1000);
  std::mutex mutex;
  std::map<std::uint64_t, std::int64_t> reported;  // reported permits, by the first word of the key
  std::vector<std::list<Permit>> held(3);
  {
    std::vector<std::jthread> workers;
    for (std::size_t which = 0; which < held.size(); ++which) {
      workers.emplace_back([&, which] {
        std::minstd_rand random(static_cast<unsigned>(which) + 1);
        for (int i = 0; i < 20'000; ++i) {
          const Charge one = line(random() % 5, many);
          Outcome outcome;
          if (random() % 2 == 0 && !held[which].empty())
            held[which].pop_front();
          else if (table.charge({&one, 1}, kStart, {&outcome, 1}))
            held[which].emplace_back(table, one, kStart, outcome.overflow);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      table.unwatch_permits();
      reported.clear();
      table.watch_permits(rules, [&](const PermitDelta& each) {
        const std::lock_guard lock(mutex);
        reported[each.key.lo] += each.units;
      });
    }
  }
  std::map<std::uint64_t, std::int64_t> is;
  for (const auto& permits : held)
    for (const auto& permit : permits) ++is[permit.charge().key.lo];
  std::erase_if(reported, [](const auto& each) { return each.second == 0; });
  EXPECT_EQ(reported, is);
  table.unwatch_permits();
}

}  // namespace
}  // namespace weir::limit
