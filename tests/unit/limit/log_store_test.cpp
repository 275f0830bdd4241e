// Tests that the log store can hand out a chunk again after the chunk was returned.
#include "limit/log/log_store.hpp"

#include <cstddef>
#include <set>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

constexpr std::size_t kChunks = 50;

// Takes all free chunks and returns them.
std::set<LogStore::Ref> take_all(LogStore& store) {
  std::set<LogStore::Ref> taken;
  while (const auto chunk = store.take(0))
    EXPECT_TRUE(taken.insert(chunk).second) << "the chunk was already handed out";
  EXPECT_EQ(store.in_use(), kChunks);
  return taken;
}

TEST(LogStore, StoreHandsOutNoMoreChunksThanItHas) {
  LogStore store(kChunks);
  EXPECT_EQ(take_all(store).size(), kChunks);
  EXPECT_EQ(store.take(0), 0U);
}

TEST(LogStore, StoreReusesEveryReturnedChunk) {
  LogStore store(kChunks);
  for (int round = 0; round < 3; ++round) {
    for (const auto chunk : take_all(store)) store.give_back(chunk);
    EXPECT_EQ(store.in_use(), 0U);
  }
  EXPECT_EQ(take_all(store).size(), kChunks);
}

TEST(LogStore, ChunksLinkedInARingAreReturnedTogether) {
  LogStore store(kChunks);
  for (int round = 0; round < 3; ++round) {
    const auto all = take_all(store);
    auto before = *all.rbegin();
    for (const auto chunk : all) {
      store[before].next = chunk;
      before = chunk;
    }
    store.give_back_ring(*all.begin());
    store.give_back_ring(0);  // 0 means a log without chunks
    EXPECT_EQ(store.in_use(), 0U);
  }
  EXPECT_EQ(take_all(store).size(), kChunks);
}

TEST(LogStore, RingOfOneChunkCanBeReturned) {
  LogStore store(kChunks);
  for (const auto chunk : take_all(store)) store.give_back_ring(chunk);
  EXPECT_EQ(store.in_use(), 0U);
  EXPECT_EQ(take_all(store).size(), kChunks);
}

}  // namespace
}  // namespace weir::limit
