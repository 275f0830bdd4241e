#include "weir/observe/histogram.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using base::Duration;

std::size_t bucket_that_took(Duration duration) {
  Histogram histogram;
  histogram.record(duration);
  const auto reading = histogram.read();
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i)
    if (reading.counts[i] == 1) return i;
  return Histogram::kBuckets;
}

TEST(Histogram, ValueEqualToAnUpperBoundIsCountedInTheBucketOfThatBound) {
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    const std::int64_t bound = Histogram::kBounds[i];
    EXPECT_EQ(bucket_that_took(Duration{bound}), i) << bound;
    EXPECT_EQ(bucket_that_took(Duration{bound + 1}), i + 1) << bound;
  }
}

TEST(Histogram, ZeroNegativeAndInfiniteDurationsAreCountedInTheOuterBuckets) {
  EXPECT_EQ(bucket_that_took(Duration{0}), 0U);
  EXPECT_EQ(bucket_that_took(Duration{-5}), 0U);
  EXPECT_EQ(bucket_that_took(base::kForever), Histogram::kBounds.size());
}

TEST(Histogram, FindsTheSameBucketAsASearchThroughAllBounds) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const auto us = static_cast<std::int64_t>(random() >> (random() % 64) & 0x7fff'ffff'ffff);
    const auto bound = std::lower_bound(Histogram::kBounds.begin(), Histogram::kBounds.end(), us);
    EXPECT_EQ(bucket_that_took(Duration{us}), static_cast<std::size_t>(bound - Histogram::kBounds.begin()))
        << us;
  }
}

TEST(Histogram, ValuesReadFromTwoHistogramsCanBeAdded) {
  Histogram one, two;
  one.record(Duration{40});
  one.record(Duration{300});
  two.record(Duration{40});
  auto both = one.read();
  both += two.read();
  EXPECT_EQ(both.count, 3U);
  EXPECT_EQ(both.sum_us, 380U);
  EXPECT_EQ(both.counts[0], 2U);
  EXPECT_EQ(both.counts[3], 1U);
}

}  // namespace
}  // namespace weir::observe
