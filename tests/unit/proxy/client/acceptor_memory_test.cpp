// If memory runs out while a client connects, weir closes only the connection of that client.
#include "unit/proxy/serving_fixture.hpp"
#include "unit/scarce_memory.hpp"

#include <new>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

struct ScarceServer : ServingFixture {
  ScarceServer() = default;
  ~ScarceServer() { tests::allocations_left = -1; }
  ScarceServer(const ScarceServer&) = delete;
  ScarceServer& operator=(const ScarceServer&) = delete;
};

TEST(AcceptorMemory, LackOfMemoryClosesOnlyOneConnection) {
  int failed = 0;
  for (int left = 0; left < 40; ++left) {
    ScarceServer fixture;
    auto first = fixture.connect();
    tests::allocations_left = left;
    try {
      fixture.turn();
    } catch (const std::bad_alloc&) {  // Asio itself had no memory; in the program this ends the process
      continue;
    }
    const bool scarce = tests::allocations_left == 0;
    tests::allocations_left = -1;
    if (scarce) ++failed;
    auto second = fixture.connect();
    EXPECT_NE(fixture.ask(second).find("here"), std::string::npos) << "after " << left << " allocations";
  }
  EXPECT_GE(failed, 2) << "allocations: a port and a session; coroutine frames may be recycled";
}

// A session without memory for its coroutine frame has not started, so a drain must not wait for it.
TEST(AcceptorMemory, DrainDoesNotWaitForASessionThatNeverStarted) {
  for (int left = 0; left < 24; ++left) {
    ScarceServer fixture;
    {
      const auto held = fixture.fill(3 * left + 3);
      auto first = fixture.connect();
      tests::allocations_left = left;
      try {
        fixture.turn();
      } catch (const std::bad_alloc&) {  // Asio itself had no memory
        continue;
      }
      tests::allocations_left = -1;
    }
    for (int i = 0; i < 5000 && fixture.worker.sessions != 0; ++i) fixture.turn();
    fixture.acceptor->close();
    fixture.turn();
    EXPECT_EQ(fixture.worker.sessions, 0U) << "after " << left << " allocations";
    EXPECT_TRUE(fixture.acceptor->is_drained()) << "after " << left << " allocations";
  }
}

}  // namespace
}  // namespace weir::proxy
