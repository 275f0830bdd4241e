#include "weir/proxy/pace.hpp"

#include <gtest/gtest.h>

namespace weir::proxy::test {
namespace {

using namespace std::chrono_literals;

constexpr LeastRate kLeast{100, 10s};

TEST(Pace, AnOctetNowAndThenIsTooSlow) {
  Pace pace(kLeast);
  std::uint64_t moved = 0;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(pace.note(1s, ++moved)) << "within the grace";
  EXPECT_FALSE(pace.note(1s, ++moved));
}

TEST(Pace, WhoKeepsItUpMayGoOnForEver) {
  Pace pace(kLeast);
  std::uint64_t moved = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pace.note(1s, moved += 100)) << i;
}

TEST(Pace, WhatCameAtTheBeginningBuysNothingLater) {
  Pace pace(kLeast);
  std::uint64_t moved = 1'000'000;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pace.note(1s, ++moved)) << i;
  bool fast = true;
  for (int i = 0; i < 10; ++i) fast = pace.note(1s, ++moved) && fast;
  EXPECT_FALSE(fast);
}

TEST(Pace, WithoutARateNothingCounts) {
  EXPECT_FALSE(Pace({0, 10s}).counts());
  EXPECT_TRUE(Pace(kLeast).counts());
}

}  // namespace
}  // namespace weir::proxy::test
