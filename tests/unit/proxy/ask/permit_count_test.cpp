// Counts open permits up to a bound.
#include "weir/proxy/permit_count.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST(PermitCount, NoMorePermitsAreOpenThanTheBound) {
  const auto count = std::make_shared<PermitCount>();
  auto first = PermitCount::take(count, 2);
  ASSERT_TRUE(first);
  {
    const auto second = PermitCount::take(count, 2);
    EXPECT_TRUE(second);
    EXPECT_FALSE(PermitCount::take(count, 2));
    EXPECT_TRUE(PermitCount::take(count, 3)) << "a reload has raised the bound";
  }
  const PermitCount::Reservation moved(std::move(*first));
  first.reset();
  EXPECT_TRUE(PermitCount::take(count, 2));
  EXPECT_FALSE(PermitCount::take(count, 1)) << "the place that was moved is still taken";
}

}  // namespace
}  // namespace weir::proxy
