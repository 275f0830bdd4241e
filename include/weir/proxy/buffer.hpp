// Memory for bytes under way: fixed-size blocks that a worker hands from one connection to the next, and the
// receiving end of a stream built on one.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::proxy {

// Pages of their own: what a burst of connections took goes back to the system, which memory between smaller
// pieces would not.
struct Unmap {
  std::size_t size = 0;  // bytes
  void operator()(char* block) const noexcept;
};
using Block = std::unique_ptr<char[], Unmap>;

// Blocks of one size, kept for reuse up to a bound. Belongs to one worker.
class BlockPool {
 public:
  explicit BlockPool(std::size_t block_size) : block_size_(block_size) { free_.reserve(most_kept()); }
  [[nodiscard]] Block take();
  void give_back(Block block) noexcept;
  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }

 private:
  static constexpr std::size_t kKept = 16 << 20;  // bytes
  [[nodiscard]] std::size_t most_kept() const noexcept { return kKept / block_size_ + 1; }

  std::size_t block_size_;
  std::vector<Block> free_;
};

// Bytes received and not yet used. What was pinned (a head that views point into) stays where it is until
// unpinned.
//
//   |— pinned —|— used —|— unread —|— room —|
class Inbox {
 public:
  explicit Inbox(BlockPool& pool) noexcept : pool_(pool) {}
  ~Inbox() { release(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] std::string_view unread() const noexcept { return {block_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

  // Where the next bytes go. Takes a block when there is none; moves unread bytes down to make room.
  [[nodiscard]] char* space();
  [[nodiscard]] std::size_t room() const noexcept { return pool_.block_size() - end_; }
  void received(std::size_t count) noexcept { end_ += count; }

  void use(std::size_t count) noexcept;
  // Leaves half a block of room or more behind a head of `count` bytes, wherever it stands: it may have come
  // behind others. Moves what is unread where it must, so a head is looked for, then this, then it is read.
  // REQUIRES that nothing is pinned, and a head of half a block at most.
  void make_room_behind(std::size_t count) noexcept;
  // Uses `count` bytes and keeps them in place. REQUIRES that there is room for a body behind them.
  void use_and_pin(std::size_t count) noexcept;
  void unpin() noexcept;

  // Gives the block back; what is unread is lost.
  void release();
  [[nodiscard]] bool holds_block() const noexcept { return block_ != nullptr; }

 private:
  BlockPool& pool_;
  Block block_;
  std::size_t pinned_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir::proxy
