// Checks that the limiters make the decisions that were computed by hand.
#include "unit/limit/limit_vectors.hpp"

#include "weir/limit/key_table.hpp"

#include <string_view>

namespace weir::limit {
namespace {

Key key_of_client(std::string_view client) {
  return key_of(std::hash<std::string_view>{}(client));
}

TEST(LimitVectors, LimitersDecideAsComputedByHand) {
  for (const auto& [name, limiter, requests] : all_limit_vectors()) {
    KeyTable table(64);
    for (const auto& [at, client, cost, expected] : requests) {
      SCOPED_TRACE(testing::Message() << name << ": " << client << " asks for " << cost << " after "
                                      << at.count() / 60'000'000 << " min");
      const Charge charge{key_of_client(client), &limiter, cost};
      Outcome got;
      EXPECT_EQ(table.charge({&charge, 1}, kVectorsBegin + at, {&got, 1}), expected.allowed);
      EXPECT_EQ(got.allowed, expected.allowed);
      EXPECT_EQ(got.remaining, expected.remaining);
      EXPECT_EQ(got.retry_after, expected.retry_after);
      EXPECT_EQ(got.reset_after, expected.reset_after);
      EXPECT_EQ(got.delay, 0us);
    }
  }
}

// The expected decisions of calendar windows are right only for vectors that begin at this instant.
TEST(LimitVectors, VectorsBeginOnAMondayAtMidnight) {
  const std::chrono::sys_days day{std::chrono::floor<std::chrono::days>(kVectorsBegin)};
  EXPECT_EQ(TimePoint(day), kVectorsBegin);
  EXPECT_EQ(std::chrono::year_month_day(day), std::chrono::year(2024) / 1 / 1);
  EXPECT_EQ(std::chrono::weekday(day), std::chrono::Monday);
}

}  // namespace
}  // namespace weir::limit
