#include "weir/proxy/min_rate.hpp"

#include <gtest/gtest.h>

namespace weir::proxy::test {
namespace {

using namespace std::chrono_literals;

constexpr MinRate kLeast{100, 10s};

TEST(MinRateCheck, RejectsASenderThatSendsOneOctetASecond) {
  MinRateCheck pace(kLeast);
  std::uint64_t moved = 0;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(pace.note(1s, ++moved)) << "within the grace period";
  EXPECT_FALSE(pace.note(1s, ++moved));
}

TEST(MinRateCheck, AcceptsASenderAtExactlyTheMinimumRate) {
  MinRateCheck pace(kLeast);
  std::uint64_t moved = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pace.note(1s, moved += 100)) << i;
}

TEST(MinRateCheck, RejectsASenderThatBecomesSlowAfterAFastStart) {
  MinRateCheck pace(kLeast);
  std::uint64_t moved = 1'000'000;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pace.note(1s, ++moved)) << i;
  bool fast = true;
  for (int i = 0; i < 10; ++i) fast = pace.note(1s, ++moved) && fast;
  EXPECT_FALSE(fast);
}

TEST(MinRateCheck, AcceptsAnySpeedWithoutAMinimumRate) {
  EXPECT_FALSE(MinRateCheck({0, 10s}).counts());
  EXPECT_TRUE(MinRateCheck(kLeast).counts());
}

}  // namespace
}  // namespace weir::proxy::test
