// The word of a slot that says when the slot may be evicted, and whose rule it is.
#include "limit/table/shard.hpp"
#include "unit/limit/traffic.hpp"

#include <random>

namespace weir::limit {
namespace {

TEST(Due, AllowsNoEvictionBeforeTheCellIsDrained) {
  std::mt19937_64 random(new_seed());
  for (int i = 0; i < 100'000; ++i) {
    const TimePoint drained_at = kStart + Duration(random() % 100'000'000);
    const Due due(drained_at, 0, false);
    ASSERT_FALSE(due.evictable(drained_at - 1us));
    ASSERT_TRUE(due.evictable(drained_at + 7us)) << "a slot is kept for at most 7 µs too long";
    ASSERT_GE(due.evictable_at(), drained_at);
    ASSERT_TRUE(due.evictable(due.evictable_at()));
    ASSERT_EQ(Due(due.evictable_at(), 0, false).evictable_at(), due.evictable_at())
        << "a snapshot must not delay the eviction further";
  }
}

TEST(Due, KeepsTheNumberOfTheRuleApartFromTheTime) {
  for (std::size_t rule = 0; rule < kMaxRules; ++rule) {
    const auto index = static_cast<RuleIndex>(rule);
    for (const bool is_log : {false, true}) {
      const Due due(kStart, index, is_log);
      ASSERT_EQ(due.rule(), index);
      ASSERT_EQ(due.is_log(), is_log);
      ASSERT_EQ(due.evictable_at(), kStart);
    }
    ASSERT_EQ(Due::pinned(index).rule(), index);
    ASSERT_TRUE(Due::pinned(index).is_pinned());
  }
}

TEST(Due, NeverEvictsAPinnedSlotOrACellWithPermits) {
  constexpr TimePoint kYear3000{Duration{32'503'680'000'000'000}};
  EXPECT_FALSE(Due::pinned(7).evictable(kYear3000));
  const Due holds(kNever, 7, false);
  EXPECT_TRUE(holds.never_drains());
  EXPECT_FALSE(holds.is_pinned());
  EXPECT_FALSE(holds.evictable(kYear3000));
  EXPECT_FALSE(Due(kYear3000, 7, false).never_drains());
  EXPECT_TRUE(Due(TimePoint{}, 7, false).evictable(TimePoint{})) << "a cell without permits";
}

}  // namespace
}  // namespace weir::limit
