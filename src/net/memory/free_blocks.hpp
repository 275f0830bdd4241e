// Free blocks of malloc(3), kept for reuse by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <malloc.h>

namespace weir::net {

// Lists of free blocks, one list for each class of sizes. A free block stores the address of the next one.
// All blocks come from malloc(3), so one thread may give back what another thread took.
class FreeBlocks {
 public:
  static constexpr std::size_t kMostKept = 1 << 20;  // bytes, in all lists
  static constexpr std::size_t kLargest = 32'000;    // bytes of a block; larger blocks are not kept

  constexpr FreeBlocks() noexcept = default;
  ~FreeBlocks() {
    for (auto*& head : heads_)
      while (head != nullptr) std::free(std::exchange(head, head->next));
  }
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;

  // Returns a block of at least `size` bytes; null if memory has run out.
  [[nodiscard]] void* take(std::size_t size) noexcept {
    if (size > kLargest) return std::malloc(size);
    const auto index = class_above(size + kHeader);
    auto*& head = heads_[index];
    if (head == nullptr) return std::malloc(chunk_of(index) - kHeader);
    kept_ -= chunk_of(index);
    return std::exchange(head, head->next);
  }
  // Keeps a block of malloc(3), or frees it if enough is kept.
  void give_back(void* block) noexcept {
    const auto index = class_below(::malloc_usable_size(block) + kHeader);
    if (index >= kClasses || kept_ + chunk_of(index) > kMostKept) return std::free(block);
    kept_ += chunk_of(index);
    heads_[index] = new (block) Link{heads_[index]};
  }
  // Returns how many bytes the lists hold.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }

 private:
  struct Link {
    Link* next;
  };

  // glibc's malloc allocates chunks: a multiple of 16 bytes, at least 32, of which a block gets all but 8. So
  // a class is a size of chunks. Up to 1 KiB, each size has a class; above, every eighth size has one. The
  // rounding costs an idle TLS connection about 1 % more memory.
  static constexpr std::size_t kHeader = 8;
  static constexpr std::size_t kSmallest = 32;
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kLargeStep = 128;
  static constexpr std::size_t kLastSmall = 1024 / kStep;  // the class of chunks of 1 KiB
  static constexpr std::size_t kOffset = kLastSmall - 1024 / kLargeStep;

  // Returns the first class whose chunks have at least this size.
  static constexpr std::size_t class_above(std::size_t chunk) noexcept {
    const auto small = (std::max(chunk, kSmallest) + kStep - 1) / kStep;
    return small <= kLastSmall ? small : kOffset + (chunk + kLargeStep - 1) / kLargeStep;
  }
  // Returns the last class whose chunks have at most this size.
  static constexpr std::size_t class_below(std::size_t chunk) noexcept {
    return chunk / kLargeStep <= 1024 / kLargeStep ? std::min(chunk / kStep, kLastSmall)
                                                   : kOffset + chunk / kLargeStep;
  }
  static constexpr std::size_t chunk_of(std::size_t index) noexcept {
    return index <= kLastSmall ? index * kStep : (index - kOffset) * kLargeStep;
  }
  static constexpr std::size_t kClasses = kOffset + (kLargest + kHeader + kLargeStep - 1) / kLargeStep + 1;

  std::array<Link*, kClasses> heads_{};
  std::size_t kept_ = 0;
};

}  // namespace weir::net
