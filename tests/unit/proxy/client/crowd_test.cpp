#include "weir/proxy/crowd.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy::test {
namespace {

const auto kOne = base::IpAddress::v4(1);
const auto kOther = base::IpAddress::v4(2);

TEST(Crowd, EachAddressHasSoManyPlaces) {
  Crowd crowd(2);
  auto first = crowd.enter(kOne);
  const auto second = crowd.enter(kOne);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(crowd.enter(kOne));
  EXPECT_TRUE(crowd.enter(kOther));
  first = {};
  EXPECT_TRUE(crowd.enter(kOne));
}

TEST(Crowd, APlaceThatMovedIsGivenBackOnce) {
  Crowd crowd(1);
  {
    auto place = crowd.enter(kOne);
    const auto moved = std::move(place);
    EXPECT_FALSE(crowd.enter(kOne));
  }
  EXPECT_TRUE(crowd.enter(kOne));
}

TEST(Crowd, ThreadsShareThePlaces) {
  Crowd crowd(3);
  std::atomic<int> inside{0};
  std::atomic<bool> passed{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        const auto place = crowd.enter(kOne);
        if (!place) continue;
        if (++inside > 3) passed = true;
        --inside;
      }
    });
  threads.clear();
  EXPECT_FALSE(passed);
  EXPECT_TRUE(crowd.enter(kOne));
}

}  // namespace
}  // namespace weir::proxy::test
