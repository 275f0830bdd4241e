#include "weir/observe/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using ::testing::ElementsAre;
using Totals = std::vector<std::uint64_t>;
using From = std::vector<std::optional<std::size_t>>;

std::vector<std::uint32_t> series(const History& history, std::size_t at) {
  std::vector<std::uint32_t> out;
  for (std::size_t step = 0; step < history.steps(); ++step) out.push_back(history.increase(at, step));
  return out;
}

TEST(HistoryTest, FirstTotalIsNotCountedAsAnIncrease) {
  History history(2, 4);
  history.note(Totals{100, 7});
  EXPECT_EQ(history.steps(), 0U);
  history.note(Totals{103, 7});
  EXPECT_THAT(series(history, 0), ElementsAre(3U));
  EXPECT_THAT(series(history, 1), ElementsAre(0U));
}

TEST(HistoryTest, FullHistoryDropsItsOldestValues) {
  History history(1, 3);
  for (const std::uint64_t total : {0, 1, 3, 6, 10, 15}) history.note(Totals{total});
  EXPECT_THAT(series(history, 0), ElementsAre(3U, 4U, 5U));
}

TEST(HistoryTest, TotalThatDecreasesCountsAsRestartedFromZero) {
  History history(1, 3);
  for (const std::uint64_t total : {50, 60, 4}) history.note(Totals{total});
  EXPECT_THAT(series(history, 0), ElementsAre(10U, 4U));
}

TEST(HistoryTest, IncreaseBeyond32BitsIsStoredAsTheLargest32BitNumber) {
  History history(1, 3);
  history.note(Totals{0});
  history.note(Totals{std::uint64_t{1} << 40});
  EXPECT_THAT(series(history, 0), ElementsAre(0xFFFF'FFFFU));
}

TEST(HistoryTest, RemainingSeriesKeepTheirValuesWhenOtherSeriesAreAddedOrRemoved) {
  History history(3, 3);
  history.note(Totals{0, 0, 0});
  history.note(Totals{1, 2, 3});
  history.remap(From{2, std::nullopt, 0});
  EXPECT_EQ(history.series(), 3U);
  EXPECT_THAT(series(history, 0), ElementsAre(3U));
  EXPECT_THAT(series(history, 1), ElementsAre(0U));
  history.note(Totals{10, 1000, 2});
  EXPECT_THAT(series(history, 0), ElementsAre(3U, 7U));
  // weir does not know when the new series grew to 1000, so its first total does not count as an increase.
  EXPECT_THAT(series(history, 1), ElementsAre(0U, 0U));
  EXPECT_THAT(series(history, 2), ElementsAre(1U, 1U));
  history.note(Totals{10, 1005, 2});
  EXPECT_THAT(series(history, 1), ElementsAre(0U, 0U, 5U));
}

TEST(HistoryTest, NumberOfSeriesCanDecreaseToZero) {
  History history(2, 2);
  history.note(Totals{0, 0});
  history.note(Totals{1, 2});
  history.remap(From{1});
  EXPECT_THAT(series(history, 0), ElementsAre(2U));
  history.remap(From{});
  history.note(Totals{});
  EXPECT_EQ(history.series(), 0U);
}

}  // namespace
}  // namespace weir::observe
