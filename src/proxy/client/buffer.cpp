#include "weir/proxy/buffer.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace weir::proxy {

void Unmap::operator()(char* block) const noexcept {
  ::munmap(block, size);
}

Block BlockPool::take() {
  if (free_.empty()) return map();
  auto block = std::move(free_.back());
  free_.pop_back();
  peak_ = std::max(peak_, ++in_use_);
  return block;
}

// Maps a new block. Also reserves a place in the list of free blocks for every block in use, so that
// give_back() cannot fail.
Block BlockPool::map() {
  if (free_.capacity() <= in_use_) free_.reserve(2 * in_use_ + 1);
  void* const pages =
      ::mmap(nullptr, block_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  peak_ = std::max(peak_, ++in_use_);
  return {static_cast<char*>(pages), Unmap{block_size_}};
}

void BlockPool::give_back(Block block) noexcept {
  --in_use_;
  free_.push_back(std::move(block));
}

void BlockPool::trim(base::TimePoint now) noexcept {
  if (now - window_began_ >= kWindow) {
    window_began_ = now;
    earlier_peak_ = std::exchange(peak_, in_use_);
  }
  const auto wanted = std::max(peak_, earlier_peak_);
  const auto blocks = in_use_ + free_.size();
  const auto unmapped = std::min({blocks - std::min(blocks, wanted), free_.size(), kUnmappedAtOnce});
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(unmapped));
}

char* Inbox::space() {
  if (!block_) block_ = pool_.take();
  if (begin_ > front() && room() == 0) {
    std::memmove(block_.get() + front(), block_.get() + begin_, end_ - begin_);
    end_ -= begin_ - front();
    begin_ = front();
  }
  return block_.get() + end_;
}

void Inbox::grow() {
  if (!filled_ || large_ == nullptr || size() >= large_->block_size()) return;
  auto block = large_->try_take();
  if (!block) return;
  const auto count = end_ - begin_;
  std::memcpy(block.get(), block_.get() + begin_, count);
  if (pinned_ != 0)
    head_block_ = std::move(block_);
  else
    pool_.give_back(std::move(block_));
  block_ = std::move(block);
  begin_ = 0;
  end_ = count;
  filled_ = false;
}

void Inbox::shrink() noexcept {
  if (!is_large() || !empty() || (pinned_ != 0 && !head_block_)) return;
  large_->give_back(std::move(block_));
  block_ = std::move(head_block_);
  filled_ = false;
  rewind();
}

void Inbox::use(std::size_t count) noexcept {
  begin_ += count;
  if (begin_ == end_) rewind();
}

// Moves the unread octets only if the head would end in the second half of the block. Otherwise many requests
// that arrive together would take quadratic time, because each request would move all octets behind it.
void Inbox::make_room_behind(std::size_t count) noexcept {
  const auto half = size() / 2;
  assert(pinned_ == 0 && count <= end_ - begin_ && count <= half);
  if (begin_ + count <= half) return;
  std::memmove(block_.get(), block_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

void Inbox::use_and_pin(std::size_t count) noexcept {
  assert(begin_ + count <= size() / 2);
  begin_ += count;
  pinned_ = begin_;
}

void Inbox::unpin() noexcept {
  if (head_block_) pool_.give_back(std::move(head_block_));
  pinned_ = 0;
  if (begin_ == end_) rewind();
  shrink();
}

void Inbox::release() {
  if (head_block_) pool_.give_back(std::move(head_block_));
  if (block_) (is_large() ? *large_ : pool_).give_back(std::move(block_));
  pinned_ = begin_ = end_ = 0;
  filled_ = false;
}

}  // namespace weir::proxy
