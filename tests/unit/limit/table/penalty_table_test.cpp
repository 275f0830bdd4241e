// Tests the bookkeeping of the penalty table when memory runs out.
#include "limit/table/penalty_table.hpp"

#include "unit/limit/traffic.hpp"
#include "unit/scarce_memory.hpp"

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

constexpr std::size_t kOneEntry =
    PenaltyTable::kAccountBytes + PenaltyTable::kEntryBytes + PenaltyTable::kBytesPerTime;
const Penalty kAfterTwo{.after = 2, .first = 2h, .grows = 2, .most = 24h, .forget = 24h};

// Runs `step` with a table for one entry, once for each allocation that `step` makes, and makes this
// allocation fail. Afterwards the whole memory of the table must be available to another rule.
template <class Step>
void expect_no_leak(Step step) {
  int failures = 0;
  for (bool failed = true; failed && !::testing::Test::HasFailure(); ++failures) {
    PenaltyTable table;
    table.open(kOneEntry);
    tests::allocations_left = failures;
    failed = !step(table);
    tests::allocations_left = -1;
    if (!failed) break;
    EXPECT_EQ(table.keys(), 0U);
    const auto lost = table.lost();
    (void)table.violate(key_of(2, 2), 2, kAfterTwo, kStart);
    EXPECT_EQ(table.lost(), lost) << "allocation " << failures;
    EXPECT_EQ(table.keys(), 1U);
  }
  EXPECT_GE(failures, 2) << "the step allocates for the account and for the entry";
}

TEST(PenaltyTable, ViolationThatFindsNoMemoryTakesNoRoomFromOtherRules) {
  expect_no_leak([](PenaltyTable& table) {
    (void)table.violate(key_of(1, 1), 1, kAfterTwo, kStart);
    return table.lost() == 0;
  });
}

TEST(PenaltyTable, RestoredPenaltyThatFindsNoMemoryTakesNoRoomFromOtherRules) {
  PenaltyState state;
  ASSERT_FALSE(violate(kAfterTwo, state, kStart));
  const SavedPenalty saved{.key = key_of(1, 1), .forgotten_at = kStart + 24h, .state = state};
  expect_no_leak([&](PenaltyTable& table) { return table.restore(saved); });
}

}  // namespace
}  // namespace weir::limit
