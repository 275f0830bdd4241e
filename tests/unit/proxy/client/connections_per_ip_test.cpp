#include "weir/proxy/connections_per_ip.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy::test {
namespace {

const auto kOne = base::IpAddress::v4(1);
const auto kOther = base::IpAddress::v4(2);

TEST(ConnectionsPerIp, LimitsTheNumberOfConnectionsOfEachAddress) {
  ConnectionsPerIp connections_per_ip(2);
  auto first = connections_per_ip.enter(kOne);
  const auto second = connections_per_ip.enter(kOne);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(connections_per_ip.enter(kOne));
  EXPECT_TRUE(connections_per_ip.enter(kOther));
  first = {};
  EXPECT_TRUE(connections_per_ip.enter(kOne));
}

TEST(ConnectionsPerIp, MovedConnectionSlotIsReleasedOnlyOnce) {
  ConnectionsPerIp connections_per_ip(1);
  {
    auto slot = connections_per_ip.enter(kOne);
    const auto moved = std::move(slot);
    EXPECT_FALSE(connections_per_ip.enter(kOne));
  }
  EXPECT_TRUE(connections_per_ip.enter(kOne));
}

TEST(ConnectionsPerIp, ConcurrentThreadsShareTheLimit) {
  ConnectionsPerIp connections_per_ip(3);
  std::atomic<int> inside{0};
  std::atomic<bool> passed{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        const auto slot = connections_per_ip.enter(kOne);
        if (!slot) continue;
        if (++inside > 3) passed = true;
        --inside;
      }
    });
  threads.clear();
  EXPECT_FALSE(passed);
  EXPECT_TRUE(connections_per_ip.enter(kOne));
}

}  // namespace
}  // namespace weir::proxy::test
