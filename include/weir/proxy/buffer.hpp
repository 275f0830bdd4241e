// Receive buffers. A worker reuses fixed-size blocks from one connection to the next; an Inbox is the receive
// buffer of one stream and occupies one block.
#pragma once

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

// Keeps freed blocks of one size for reuse: at most 16 MiB. Belongs to one worker.
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
