#include "weir/proxy/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

void receive(Inbox& inbox, std::string_view bytes) {
  char* at = inbox.space();
  ASSERT_LE(bytes.size(), inbox.room());
  std::memcpy(at, bytes.data(), bytes.size());
  inbox.received(bytes.size());
}

TEST(BlockPool, ReturnedBlocksAreReused) {
  BlockPool pool(64);
  auto block = pool.take();
  const auto* where = block.get();
  pool.give_back(std::move(block));
  EXPECT_EQ(pool.take().get(), where);
  EXPECT_EQ(pool.block_size(), 64U);
}

// Takes `count` blocks at once, and returns them all.
void use_at_once(BlockPool& pool, std::size_t count) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < count; ++at) blocks.push_back(pool.take());
  for (auto& block : blocks) pool.give_back(std::move(block));
}

TEST(BlockPool, KeepsAsManyBlocksAsWereInUseRecently) {
  BlockPool pool(64);
  const base::TimePoint start{base::Duration{1'000'000'000}};
  constexpr auto kWindow = BlockPool::kWindow;
  pool.trim(start);
  use_at_once(pool, 50);
  pool.trim(start + kWindow - base::Duration{1});
  EXPECT_EQ(pool.kept(), 50U);
  pool.trim(start + kWindow);
  EXPECT_EQ(pool.kept(), 50U) << "the peak was in the window before";
  use_at_once(pool, 20);
  pool.trim(start + 2 * kWindow - base::Duration{1});
  EXPECT_EQ(pool.kept(), 50U);
  pool.trim(start + 2 * kWindow);
  EXPECT_EQ(pool.kept(), 20U);
  pool.trim(start + 3 * kWindow);
  pool.trim(start + 4 * kWindow);
  EXPECT_EQ(pool.kept(), 0U) << "no block was used for two windows";
}

TEST(BlockPool, UnmapsFewBlocksAtOnce) {
  BlockPool pool(64);
  const base::TimePoint start{base::Duration{1'000'000'000}};
  const auto end = start + BlockPool::kWindow;
  constexpr auto kAtOnce = BlockPool::kUnmappedAtOnce;
  use_at_once(pool, 2 * kAtOnce + 10);
  for (const auto now : {start, start + BlockPool::kWindow}) pool.trim(now);
  EXPECT_EQ(pool.kept(), kAtOnce + 10);
  pool.trim(end);
  EXPECT_EQ(pool.kept(), 10U);
  pool.trim(end);
  EXPECT_EQ(pool.kept(), 0U);
}

TEST(BlockPool, KeepsNoFreeBlockWhileTheBlocksInUseReachTheRecentPeak) {
  BlockPool pool(64);
  const base::TimePoint start{base::Duration{1'000'000'000}};
  use_at_once(pool, 10);
  std::vector<Block> held;
  for (int at = 0; at < 6; ++at) held.push_back(pool.take());
  for (int window = 0; window < 4; ++window) pool.trim(start + window * BlockPool::kWindow);
  EXPECT_EQ(pool.kept(), 0U) << "six are in use, and no more were";
  for (auto& block : held) pool.give_back(std::move(block));
  pool.trim(start + 4 * BlockPool::kWindow);
  EXPECT_EQ(pool.kept(), 6U);
}

TEST(Inbox, BlockIsTakenForAReadAndReleasedWhenAllBytesAreConsumed) {
  BlockPool pool(64);
  Inbox inbox(pool);
  EXPECT_TRUE(inbox.empty());
  EXPECT_EQ(inbox.unread(), "");
  EXPECT_EQ(inbox.room(), 64U);
  EXPECT_FALSE(inbox.holds_block());
  receive(inbox, "x");
  EXPECT_TRUE(inbox.holds_block());
  inbox.release();
  EXPECT_FALSE(inbox.holds_block());
  EXPECT_TRUE(inbox.empty());
  inbox.release();
  receive(inbox, "y");
  EXPECT_EQ(inbox.unread(), "y");
}

TEST(Inbox, BlockIsReturnedWhenTheInboxIsDestroyed) {
  BlockPool pool(64);
  const char* where = nullptr;
  {
    Inbox inbox(pool);
    where = inbox.space();
  }
  EXPECT_EQ(pool.take().get(), where);
}

TEST(Inbox, RequestHeadStaysInPlaceWhileItsBodyIsForwarded) {
  BlockPool pool(16);
  Inbox inbox(pool);
  receive(inbox, "head0123456789ab");
  const auto head = inbox.unread().substr(0, 4);
  inbox.use_and_pin(4);
  inbox.use(10);
  receive(inbox, "cdefghijkl");  // makes space by moving "ab" to the front
  EXPECT_EQ(inbox.unread(), "abcdefghijkl");
  EXPECT_EQ(inbox.room(), 0U);
  EXPECT_EQ(head, "head");
  inbox.use(12);
  EXPECT_EQ(inbox.room(), 12U);
  receive(inbox, "ABCDEFGHIJKL");
  EXPECT_EQ(head, "head");
  inbox.unpin();
  EXPECT_EQ(inbox.unread(), "ABCDEFGHIJKL");
  inbox.use(1);
  receive(inbox, "0123");
  EXPECT_EQ(inbox.unread(), "BCDEFGHIJKL0123");
}

TEST(Inbox, PipelinedHeadsBeforeARequestLeaveRoomForItsBodyInTheBlock) {
  BlockPool pool(32);
  Inbox inbox(pool);
  receive(inbox, "one.two.three...four............");
  inbox.use(4);
  inbox.make_room_behind(4);
  EXPECT_EQ(inbox.room(), 0U) << "room will be made without a copy";
  inbox.use(12);
  inbox.make_room_behind(16);
  EXPECT_EQ(inbox.unread(), "four............");
  inbox.use_and_pin(16);
  receive(inbox, "body of 16 bytes");
  EXPECT_EQ(inbox.unread(), "body of 16 bytes");
}

TEST(BlockPool, LendsNoMoreBlocksThanItsBound) {
  BlockPool pool(64, 2);
  auto one = pool.try_take();
  const auto two = pool.try_take();
  EXPECT_FALSE(pool.try_take());
  pool.give_back(std::move(one));
  EXPECT_TRUE(pool.try_take());
}

TEST(Inbox, GrowsOnlyAfterBytesFilledTheBlock) {
  BlockPool pool(16), large(64);
  Inbox inbox(pool, &large);
  receive(inbox, "0123456789");
  inbox.grow();
  EXPECT_EQ(inbox.room(), 6U);
  receive(inbox, "abcdef");
  inbox.use(14);
  inbox.grow();
  EXPECT_EQ(inbox.unread(), "ef");
  EXPECT_EQ(inbox.room(), 62U);
  inbox.shrink();
  EXPECT_EQ(inbox.room(), 62U) << "unread bytes need the block";
  inbox.use(2);
  inbox.shrink();
  EXPECT_EQ(inbox.room(), 16U);
}

TEST(Inbox, PinnedHeadKeepsItsBlockWhileTheInboxIsLarge) {
  BlockPool pool(16), large(64);
  Inbox inbox(pool, &large);
  receive(inbox, "head0123456789ab");
  const auto head = inbox.unread().substr(0, 4);
  inbox.use_and_pin(4);
  inbox.use(12);
  inbox.grow();
  EXPECT_EQ(inbox.room(), 64U);
  receive(inbox, "the rest of the body, and octets behind it");
  EXPECT_EQ(head, "head");
  inbox.unpin();
  EXPECT_EQ(inbox.room(), 22U) << "the octets behind the body stay in the large block";
  inbox.use(inbox.unread().size());
  inbox.unpin();
  EXPECT_EQ(inbox.room(), 16U);
}

TEST(Inbox, LargeBlockWithAPinnedHeadIsKept) {
  BlockPool pool(16), large(64);
  Inbox inbox(pool, &large);
  receive(inbox, "0123456789abcdef");
  inbox.grow();
  const auto head = inbox.unread().substr(0, 16);
  inbox.use_and_pin(16);
  inbox.shrink();
  EXPECT_EQ(head, "0123456789abcdef");
  EXPECT_EQ(inbox.room(), 48U);
}

TEST(Inbox, StaysSmallIfNoLargeBlockIsFree) {
  BlockPool pool(16), large(64, 1);
  const auto taken = large.try_take();
  Inbox inbox(pool, &large);
  receive(inbox, "0123456789abcdef");
  inbox.grow();
  EXPECT_EQ(inbox.unread(), "0123456789abcdef");
  EXPECT_EQ(inbox.room(), 0U);
}

// Many heads arrive at once. At most twice as many octets may be moved as are received.
TEST(Inbox, FewOctetsAreMovedWhenPipelinedHeadsAreRead) {
  constexpr std::size_t kBlock = 4096;
  BlockPool pool(kBlock);
  Inbox inbox(pool);
  std::mt19937 random(1);
  std::size_t came = 0, moved = 0;
  while (came < 100 * kBlock) {
    (void)inbox.space();
    came += inbox.room();
    inbox.received(inbox.room());
    while (!inbox.empty()) {
      const auto size = std::min<std::size_t>(1 + random() % 40, inbox.unread().size());
      const auto* const stood = inbox.unread().data();
      inbox.make_room_behind(size);
      if (inbox.unread().data() != stood) moved += inbox.unread().size();
      inbox.use(size);
    }
  }
  EXPECT_LE(moved, 2 * came);
}

// Compares the inbox with a model: one string for the unread octets and one string for the pinned octets.
class Model {
 public:
  explicit Model(std::uint32_t seed) : random_(seed) {}

  void step() {
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2:
        return take_in();
      case 3:
      case 4:
        return use();
      case 5:
        return pin();
      case 6:
        pinned_ = 0;
        return inbox_.unpin();
      case 7:
        return random_() % 2 == 0 ? inbox_.grow() : inbox_.shrink();
      default:
        if (random_() % 10 != 0) return;
        inbox_.release();
        unread_.clear();
        pinned_ = 0;
    }
  }
  void check() const {
    ASSERT_EQ(inbox_.unread(), unread_);
    ASSERT_EQ(inbox_.empty(), unread_.empty());
    if (pinned_ > 0) {
      ASSERT_EQ(head_view_, head_);
    }
  }

 private:
  static constexpr std::size_t kBlock = 48;

  // Receives random octets. While a head is pinned, half of the block must remain for a body.
  void take_in() {
    char* at = inbox_.space();
    const auto room = inbox_.room();
    if (!is_large()) {
      ASSERT_EQ(room == 0, pinned_ + unread_.size() == kBlock) << "the buffer has space but reports none";
    }
    if (unread_.empty()) {
      ASSERT_GE(room, kBlock / 2) << "a body gets less room than a head";
    }
    if (room == 0) return;
    const auto size = random_() % 3 == 0 ? room : random_() % (room + 1);
    for (std::size_t i = 0; i < size; ++i) unread_ += at[i] = static_cast<char>('a' + next_++ % 26);
    inbox_.received(size);
  }
  [[nodiscard]] bool is_large() {
    auto block = large_.try_take();
    if (!block) return true;
    large_.give_back(std::move(block));
    return false;
  }
  void use() {
    const auto size = random_() % (unread_.size() + 1);
    inbox_.use(size);
    unread_.erase(0, size);
  }
  void pin() {
    if (pinned_ > 0) return;
    const auto size = random_() % (std::min<std::size_t>(unread_.size(), kBlock / 2) + 1);
    inbox_.make_room_behind(size);
    head_ = unread_.substr(0, size);
    head_view_ = inbox_.unread().substr(0, size);
    inbox_.use_and_pin(size);
    unread_.erase(0, size);
    // Consumed octets in front of the head also occupy the block until the head is unpinned.
    pinned_ = size == 0 ? 0 : is_large() ? size : kBlock - inbox_.room() - unread_.size();
    if (size == 0) inbox_.unpin();
  }

  std::mt19937 random_;
  BlockPool pool_{kBlock};
  BlockPool large_{3 * kBlock, 1};
  Inbox inbox_{pool_, &large_};
  std::string unread_;
  std::string head_;
  std::string_view head_view_;
  std::size_t pinned_ = 0;
  unsigned next_ = 0;
};

TEST(Inbox, RandomOperationsGiveTheSameContentsAsAString) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (std::uint32_t round = 0; round < 200; ++round) {
    Model model(seed + round);
    for (int i = 0; i < 500; ++i) {
      model.step();
      model.check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace weir::proxy
