// Memory that runs out while a client comes in closes that client, and nobody else.
#include "unit/proxy/house.hpp"
#include "unit/scarce_memory.hpp"

#include <new>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

struct ScarceHouse : House {
  ScarceHouse() = default;
  ~ScarceHouse() { tests::allocations_left = -1; }
  ScarceHouse(const ScarceHouse&) = delete;
  ScarceHouse& operator=(const ScarceHouse&) = delete;
};

TEST(EntranceMemory, WhoFindsNoneIsClosedAndTheNextOneIsServed) {
  int failed = 0;
  for (int left = 0; left < 40; ++left) {
    ScarceHouse house;
    auto first = house.connect();
    tests::allocations_left = left;
    try {
      house.turn();
    } catch (const std::bad_alloc&) {  // of Asio's own, before it calls us: that ends the process
      continue;
    }
    const bool scarce = tests::allocations_left == 0;
    tests::allocations_left = -1;
    if (scarce) ++failed;
    auto second = house.connect();
    EXPECT_NE(house.ask(second).find("here"), std::string::npos) << "after " << left << " allocations";
  }
  EXPECT_GE(failed, 3) << "a port, a session, its frames";
}

// A session whose frame finds no memory has not begun: a drain does not wait for it.
TEST(EntranceMemory, WhoNeverBeganIsNotWaitedFor) {
  for (int left = 0; left < 24; ++left) {
    ScarceHouse house;
    {
      const auto held = house.fill(3 * left + 3);
      auto first = house.connect();
      tests::allocations_left = left;
      try {
        house.turn();
      } catch (const std::bad_alloc&) {  // as above
        continue;
      }
      tests::allocations_left = -1;
    }
    for (int i = 0; i < 5000 && house.worker.sessions != 0; ++i) house.turn();
    house.entrance->close();
    house.turn();
    EXPECT_EQ(house.worker.sessions, 0U) << "after " << left << " allocations";
    EXPECT_TRUE(house.entrance->is_deserted()) << "after " << left << " allocations";
  }
}

}  // namespace
}  // namespace weir::proxy
