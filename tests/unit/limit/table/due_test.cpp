// Tests the word of a slot that stores the time of eviction and the RuleIndex.
#include "limit/table/shard.hpp"
#include "unit/limit/traffic.hpp"

#include <random>

namespace weir::limit {
namespace {

constexpr TimePoint kExactUntil{Duration{(std::int64_t{1} << 52) - (std::int64_t{1} << 45)}};  // in 2111
constexpr TimePoint kYear2600{Duration{19'880'640'000'000'000}};

TEST(SlotInfo, CellMayBeEvictedExactlyWhenItsLimitHasRefilled) {
  std::mt19937_64 random(new_seed());
  for (const TimePoint from : {TimePoint{} + 1s, kStart, kExactUntil - 100s}) {
    for (int i = 0; i < 10'000; ++i) {
      const TimePoint drained_at = from + Duration(random() % 100'000'000);
      const SlotInfo due(drained_at, 0, false);
      ASSERT_FALSE(due.evictable(drained_at - 1us));
      ASSERT_TRUE(due.evictable(drained_at));
      ASSERT_EQ(due.evictable_at(), drained_at);
    }
  }
}

TEST(SlotInfo, CellIsNeverEvictedTooEarlyAfterTheYear2111) {
  std::mt19937_64 random(new_seed());
  for (const TimePoint from : {kExactUntil - 1s, kYear2600}) {
    for (int i = 0; i < 10'000; ++i) {
      const TimePoint drained_at = from + Duration(random() % 100'000'000);
      const SlotInfo due(drained_at, 0, false);
      ASSERT_FALSE(due.evictable(drained_at - 1us));
      ASSERT_FALSE(due.evictable(kStart));
      ASSERT_TRUE(due.evictable(drained_at + 511us));
      ASSERT_GE(due.evictable_at(), drained_at);
      ASSERT_TRUE(due.evictable(due.evictable_at()));
      ASSERT_EQ(SlotInfo(due.evictable_at(), 0, false).evictable_at(), due.evictable_at())
          << "a snapshot must not delay the eviction further";
    }
  }
}

TEST(SlotInfo, StoredRuleIndexDoesNotChangeTheStoredTime) {
  for (std::size_t rule = 0; rule < kMaxRules; ++rule) {
    const auto index = static_cast<RuleIndex>(rule);
    for (const bool is_log : {false, true}) {
      const SlotInfo due(kStart, index, is_log);
      ASSERT_EQ(due.rule(), index);
      ASSERT_EQ(due.is_log(), is_log);
      ASSERT_EQ(due.evictable_at(), kStart);
    }
    ASSERT_EQ(SlotInfo::pinned(index).rule(), index);
    ASSERT_TRUE(SlotInfo::pinned(index).is_pinned());
  }
}

TEST(SlotInfo, PinnedSlotOrCellWithPermitsIsNeverEvicted) {
  EXPECT_FALSE(SlotInfo::pinned(7).evictable(kYear2600));
  const SlotInfo holds(kNever, 7, false);
  EXPECT_TRUE(holds.never_drains());
  EXPECT_FALSE(holds.is_pinned());
  EXPECT_FALSE(holds.evictable(kYear2600));
  EXPECT_FALSE(SlotInfo(kYear2600, 7, false).never_drains());
  EXPECT_TRUE(SlotInfo(TimePoint{}, 7, false).evictable(TimePoint{})) << "a cell without permits";
}

}  // namespace
}  // namespace weir::limit
