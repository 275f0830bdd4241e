// Receive buffers. A worker reuses fixed-size blocks from one connection to the next; an Inbox is the receive
// buffer of one stream and occupies one block.
#pragma once

#include "weir/base/time.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::proxy {

// Unmaps a block. Each block is mapped separately, so that the system gets the memory back after a burst of
// connections. Freed heap memory often stays in the process.
struct Unmap {
  std::size_t size = 0;  // bytes
  void operator()(char* block) const noexcept;
};
using Block = std::unique_ptr<char[], Unmap>;

// Keeps freed blocks of one size for reuse. The pool has at most as many blocks, free and in use, as were in
// use at once during the last kWindow to 2 × kWindow. trim() unmaps the others. Belongs to one worker.
class BlockPool {
 public:
  static constexpr base::Duration kWindow{2'000'000};
  static constexpr std::size_t kUnmappedAtOnce = 64;  // blocks; unmapping them takes less than 1 ms

  explicit BlockPool(std::size_t block_size) noexcept : block_size_(block_size) {}
  [[nodiscard]] Block take();
  void give_back(Block block) noexcept;
  // Unmaps at most kUnmappedAtOnce free blocks that exceed the recent peak. Must be called regularly.
  void trim(base::TimePoint now) noexcept;

  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }
  // Returns the number of free blocks that the pool keeps.
  [[nodiscard]] std::size_t kept() const noexcept { return free_.size(); }

 private:
  [[nodiscard]] Block map();

  std::size_t block_size_;
  std::vector<Block> free_;       // the most recently used block is last
  std::size_t in_use_ = 0;        // blocks that take() returned and give_back() has not received yet
  std::size_t peak_ = 0;          // the largest value of in_use_ since window_began_
  std::size_t earlier_peak_ = 0;  // the same for the window before
  base::TimePoint window_began_{};
};

// Holds received bytes until they are used. The bytes of a pinned head (the head of the current request) stay
// in place until unpin(), because string views of the parsed head point to them.
//
//   |— pinned —|— used —|— unread —|— room —|
class Inbox {
 public:
  // `pool` must outlive the inbox.
  explicit Inbox(BlockPool& pool) noexcept : pool_(pool) {}
  ~Inbox() { release(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] std::string_view unread() const noexcept { return {block_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

  // Returns where the next received bytes must be written. Takes a block if the inbox has none. If the block
  // is full, moves the unread bytes towards its beginning.
  [[nodiscard]] char* space();
  [[nodiscard]] std::size_t room() const noexcept { return pool_.block_size() - end_; }
  void received(std::size_t count) noexcept { end_ += count; }

  void use(std::size_t count) noexcept;
  // Moves the unread head of `count` bytes into the first half of the block, so that the second half has room
  // for a body. Does nothing if the head is already there. Must be called between finding the end of the head
  // and parsing the head. REQUIRES that nothing is pinned and that `count` is at most half a block.
  void make_room_behind(std::size_t count) noexcept;
  // Marks `count` bytes as used and pins them. Must be called after make_room_behind(count).
  void use_and_pin(std::size_t count) noexcept;
  void unpin() noexcept;

  // Returns the block to the pool. Unread bytes are lost.
  void release();
  [[nodiscard]] bool is_pinned() const noexcept { return pinned_ != 0; }
  [[nodiscard]] bool holds_block() const noexcept { return block_ != nullptr; }

 private:
  BlockPool& pool_;
  Block block_;
  std::size_t pinned_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir::proxy
