#include "weir/proxy/body_memory.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

constexpr std::size_t kPiece = 1000;

struct Bodies {
  BodyMemory memory{10 * kPiece};
  observe::Counters counters{{}};
};

TEST(BodyMemory, RefusesWhatExceedsTheBound) {
  BodyMemory memory(100);
  EXPECT_TRUE(memory.take(60));
  EXPECT_FALSE(memory.take(41));
  EXPECT_TRUE(memory.take(40));
  memory.give_back(1);
  EXPECT_TRUE(memory.take(1));
}

TEST(BodyMemory, ALowerBoundRefusesUntilEnoughIsGivenBack) {
  BodyMemory memory(100);
  ASSERT_TRUE(memory.take(90));
  memory.set_most(50);
  EXPECT_FALSE(memory.take(1));
  memory.give_back(41);
  EXPECT_TRUE(memory.take(1));
}

TEST(BodyMemory, NeverExceedsTheBoundWhateverTheNumberOfThreads) {
  BodyMemory memory(1000);
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round)
        if (memory.take(3)) taken += 3;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 999U);
  EXPECT_EQ(memory.taken(), 999U);
}

TEST(BodyBuffer, HoldsWhatWasAppended) {
  Bodies bodies;
  BodyBuffer buffer(bodies.memory, bodies.counters);
  std::string expected;
  for (char c = 'a'; c < 'f'; ++c) {
    ASSERT_TRUE(buffer.append(std::string(kPiece / 2, c)));
    expected.append(kPiece / 2, c);
  }
  EXPECT_EQ(buffer.view(), expected);
  EXPECT_GE(bodies.memory.taken(), expected.size());
  EXPECT_EQ(static_cast<std::uint64_t>(bodies.counters.body_memory.value()), bodies.memory.taken());
}

TEST(BodyBuffer, StaysAsItWasWhereThereIsNoRoom) {
  Bodies bodies;
  BodyBuffer first(bodies.memory, bodies.counters);
  BodyBuffer second(bodies.memory, bodies.counters);
  ASSERT_TRUE(first.append(std::string(8 * kPiece, 'x')));
  ASSERT_TRUE(second.append("abc"));
  EXPECT_FALSE(second.append(std::string(3 * kPiece, 'y')));
  EXPECT_EQ(second.view(), "abc");
  EXPECT_EQ(bodies.counters.body_memory_refused.value(), 1U);
}

TEST(BodyBuffer, GivesItsMemoryBack) {
  Bodies bodies;
  {
    BodyBuffer buffer(bodies.memory, bodies.counters);
    ASSERT_TRUE(buffer.append(std::string(kPiece, 'x')));
    buffer.clear();
    EXPECT_EQ(bodies.memory.taken(), 0U);
    ASSERT_TRUE(buffer.append(std::string(kPiece, 'x')));
  }
  EXPECT_EQ(bodies.memory.taken(), 0U);
  EXPECT_EQ(bodies.counters.body_memory.value(), 0);
}

}  // namespace
}  // namespace weir::proxy
