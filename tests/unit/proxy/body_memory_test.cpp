#include "weir/proxy/body_memory.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

constexpr std::size_t kPiece = 1000;
constexpr std::uint64_t kUnknown = 1 << 30;

struct Bodies {
  BodyMemory memory{10 * kPiece};
  observe::Counters counters{{}};
};

TEST(BodyMemory, MemoryBeyondTheBoundIsRefused) {
  BodyMemory memory(100);
  EXPECT_TRUE(memory.take(60));
  EXPECT_FALSE(memory.take(41));
  EXPECT_TRUE(memory.take(40));
  memory.give_back(1);
  EXPECT_TRUE(memory.take(1));
}

TEST(BodyMemory, MemoryIsRefusedAfterTheBoundWasLoweredUntilEnoughIsReturned) {
  BodyMemory memory(100);
  ASSERT_TRUE(memory.take(90));
  memory.set_most(50);
  EXPECT_FALSE(memory.take(1));
  memory.give_back(41);
  EXPECT_TRUE(memory.take(1));
}

TEST(BodyMemory, ConcurrentThreadsNeverExceedTheBound) {
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

TEST(BodyMemoryShare, ShareGrowsAndShrinksWithinTheBound) {
  Bodies bodies;
  {
    BodyMemoryShare share(bodies.memory, bodies.counters);
    EXPECT_TRUE(share.resize(7 * kPiece));
    EXPECT_FALSE(share.resize(11 * kPiece));
    EXPECT_EQ(bodies.memory.taken(), 7 * kPiece) << "a refused change leaves the share as it was";
    EXPECT_EQ(bodies.counters.body_memory_refused.value(), 1U);
    EXPECT_TRUE(share.resize(10 * kPiece));
    EXPECT_TRUE(share.resize(kPiece));
    EXPECT_EQ(bodies.memory.taken(), kPiece);
    EXPECT_EQ(static_cast<std::uint64_t>(bodies.counters.body_memory.value()), kPiece);
  }
  EXPECT_EQ(bodies.memory.taken(), 0U);
  EXPECT_EQ(bodies.counters.body_memory.value(), 0);
}

TEST(BodyBuffer, ContainsTheAppendedText) {
  Bodies bodies;
  BodyBuffer buffer(bodies.memory, bodies.counters);
  std::string expected;
  for (char c = 'a'; c < 'f'; ++c) {
    ASSERT_TRUE(buffer.append(std::string(kPiece / 2, c), kUnknown));
    expected.append(kPiece / 2, c);
  }
  EXPECT_EQ(buffer.view(), expected);
  EXPECT_GE(bodies.memory.taken(), expected.size());
  EXPECT_EQ(static_cast<std::uint64_t>(bodies.counters.body_memory.value()), bodies.memory.taken());
}

TEST(BodyBuffer, KeepsItsTextIfMoreMemoryIsRefused) {
  Bodies bodies;
  BodyBuffer first(bodies.memory, bodies.counters);
  BodyBuffer second(bodies.memory, bodies.counters);
  ASSERT_TRUE(first.append(std::string(8 * kPiece, 'x'), kUnknown));
  ASSERT_TRUE(second.append("abc", kUnknown));
  EXPECT_FALSE(second.append(std::string(3 * kPiece, 'y'), kUnknown));
  EXPECT_EQ(second.view(), "abc");
  EXPECT_EQ(bodies.counters.body_memory_refused.value(), 1U);
}

TEST(BodyBuffer, BodyThatArrivesInPiecesCanFillAllMemory) {
  for (const auto most : {std::uint64_t{10 * kPiece}, kUnknown}) {
    Bodies bodies;
    BodyBuffer buffer(bodies.memory, bodies.counters);
    std::string expected;
    while (expected.size() + 100 <= (most == kUnknown ? 9 * kPiece : 10 * kPiece)) {
      ASSERT_TRUE(buffer.append(std::string(100, 'x'), most)) << expected.size();
      expected.append(100, 'x');
    }
    EXPECT_EQ(buffer.view(), expected);
    EXPECT_LE(bodies.memory.taken(), 10 * kPiece);
  }
}

TEST(BodyBuffer, AtMostTheSizeOfTheBodyIsReserved) {
  Bodies bodies;
  BodyBuffer buffer(bodies.memory, bodies.counters);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(buffer.append(std::string(kPiece, 'x'), 6 * kPiece));
  EXPECT_EQ(bodies.memory.taken(), 6 * kPiece);
}

// If there is too little memory to double the block, each new block is an eighth larger than the last.
TEST(BodyBuffer, TextIsRarelyCopiedEvenIfMemoryIsShort) {
  BodyMemory memory(1 << 20);
  observe::Counters counters{{}};
  ASSERT_TRUE(memory.take(1 << 18));
  BodyBuffer buffer(memory, counters);
  int moves = 0;
  for (const char* at = nullptr; buffer.append("0123456789", kUnknown); at = buffer.view().data())
    moves += buffer.view().data() != at;
  EXPECT_GT(buffer.size(), (3U << 18) * 7 / 9);
  EXPECT_LT(moves, 30);
}

TEST(BodyBuffer, SmallBlockOfMemoryIsKeptForTheNextBody) {
  Bodies bodies;
  BodyBuffer buffer(bodies.memory, bodies.counters);
  ASSERT_TRUE(buffer.append(std::string(kPiece, 'x'), kPiece));
  const auto* const block = buffer.view().data();
  buffer.clear();
  EXPECT_EQ(bodies.memory.taken(), 0U);
  ASSERT_TRUE(buffer.append(std::string(kPiece, 'y'), kPiece));
  EXPECT_EQ(buffer.view().data(), block);
  EXPECT_EQ(buffer.view(), std::string(kPiece, 'y'));
  EXPECT_EQ(bodies.memory.taken(), kPiece);
}

TEST(BodyBuffer, MemoryIsReturnedWhenABufferIsClearedOrDestroyed) {
  Bodies bodies;
  {
    BodyBuffer buffer(bodies.memory, bodies.counters);
    ASSERT_TRUE(buffer.append(std::string(kPiece, 'x'), kUnknown));
    buffer.clear();
    EXPECT_EQ(bodies.memory.taken(), 0U);
    ASSERT_TRUE(buffer.append(std::string(kPiece, 'x'), kUnknown));
  }
  EXPECT_EQ(bodies.memory.taken(), 0U);
  EXPECT_EQ(bodies.counters.body_memory.value(), 0);
}

}  // namespace
}  // namespace weir::proxy
