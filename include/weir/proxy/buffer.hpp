// Receive buffers. A worker reuses fixed-size blocks from one connection to the next; an Inbox is the receive
// buffer of one stream and occupies one block.
#pragma once

#include "weir/base/time.hpp"

#include <cstddef>
#include <limits>
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

// Keeps freed blocks of one size for reuse. The pool remembers its peak: the largest number of blocks in use
// at the same time, during the present and the previous period of kWindow. If the blocks in use and the free
// blocks together are more than the peak, trim() unmaps free blocks. Belongs to one worker.
class BlockPool {
 public:
  static constexpr base::Duration kWindow{2'000'000};
  static constexpr std::size_t kUnmappedAtOnce = 64;  // blocks; unmapping them takes less than 1 ms

  // `most`: try_take() lends no block while this many blocks are in use. take() ignores this bound.
  explicit BlockPool(std::size_t block_size,
                     std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept
      : block_size_(block_size), most_(most) {}
  [[nodiscard]] Block take();
  // Returns a block; null if `most` blocks are in use.
  [[nodiscard]] Block try_take() { return in_use_ < most_ ? take() : Block(); }
  void give_back(Block block) noexcept;
  // Unmaps free blocks, at most kUnmappedAtOnce, if the pool has more blocks than its peak. Must be called
  // regularly.
  void trim(base::TimePoint now) noexcept;

  [[nodiscard]] std::size_t block_size() const noexcept { return block_size_; }
  // Returns the number of free blocks that the pool keeps.
  [[nodiscard]] std::size_t kept() const noexcept { return free_.size(); }

 private:
  [[nodiscard]] Block map();

  std::size_t block_size_;
  std::size_t most_;
  std::vector<Block> free_;       // the most recently used block is last
  std::size_t in_use_ = 0;        // blocks that take() returned and give_back() has not received yet
  std::size_t peak_ = 0;          // the largest value of in_use_ since window_began_
  std::size_t earlier_peak_ = 0;  // the largest value of in_use_ in the window before
  base::TimePoint window_began_{};
};

// Holds received bytes until they are used. The bytes of a pinned head (the head of the current request) stay
// in place until unpin(), because string views of the parsed head point to them.
//
//   |— pinned —|— used —|— unread —|— room —|
//
// While a long body is relayed, the inbox may have a large block. A pinned head then stays in its own block.
class Inbox {
 public:
  // Both pools must outlive the inbox. `large`: the pool for grow(); null: the inbox never grows.
  explicit Inbox(BlockPool& pool, BlockPool* large = nullptr) noexcept : pool_(pool), large_(large) {}
  ~Inbox() { release(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] std::string_view unread() const noexcept { return {block_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

  // Returns where the next received bytes must be written. Takes a block if the inbox has none. If the block
  // is full, moves the unread bytes towards its beginning.
  [[nodiscard]] char* space();
  [[nodiscard]] std::size_t room() const noexcept { return size() - end_; }
  void received(std::size_t count) noexcept {
    end_ += count;
    filled_ = end_ == size();
  }

  // If the last received bytes filled the block, and a large block is free, takes the large block and moves
  // the unread bytes there. Must be called before a read.
  void grow();
  // Returns the large block to its pool, unless it has unread bytes or a pinned head.
  void shrink() noexcept;

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
  [[nodiscard]] bool is_large() const noexcept { return size() != pool_.block_size(); }
  // Returns the size of the block that receives bytes.
  [[nodiscard]] std::size_t size() const noexcept {
    return block_ ? block_.get_deleter().size : pool_.block_size();
  }
  // Returns the first place in the block at which unread bytes may begin: behind the pinned head if this
  // block has it, otherwise at the beginning.
  [[nodiscard]] std::size_t front() const noexcept { return head_block_ ? 0 : pinned_; }
  void rewind() noexcept { begin_ = end_ = front(); }

  BlockPool& pool_;
  BlockPool* large_;
  Block block_;
  Block head_block_;  // has the pinned head while block_ is large; otherwise null
  std::size_t pinned_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool filled_ = false;  // true: the last received bytes filled the block
};

}  // namespace weir::proxy
