// Limits the memory of the bodies that rules read: one bound for all connections and workers.
//
// server::Program owns the BodyMemory, and any thread may use it. A BodyBuffer and a BodyMemoryShare belong
// to one worker.
#pragma once

#include "weir/observe/counters.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::proxy {

// The bound ([server] max_body_memory) and how many bytes of it are in use.
class BodyMemory {
 public:
  explicit BodyMemory(std::uint64_t most) noexcept : most_(most) {}

  // Sets the bound after a reload. Memory in use is not affected.
  void set_most(std::uint64_t most) noexcept { most_.store(most, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

  // Reserves `bytes` bytes. Returns false and reserves none if the sum would exceed the bound.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> taken_{0};
};

// Reserves a part of a BodyMemory for memory that the share's owner allocates itself. The destructor gives
// the whole part back.
class BodyMemoryShare {
 public:
  // `memory` and `counters` must outlive the share.
  BodyMemoryShare(BodyMemory& memory, observe::Counters& counters) noexcept
      : memory_(memory), counters_(counters) {}
  ~BodyMemoryShare() { (void)resize(0); }
  BodyMemoryShare(const BodyMemoryShare&) = delete;
  BodyMemoryShare& operator=(const BodyMemoryShare&) = delete;

  // Changes the size of the share to this many bytes. Returns true on success. If BodyMemory has no room,
  // counts the failure in `counters`, leaves the share unchanged and returns false.
  [[nodiscard]] bool resize(std::uint64_t bytes) noexcept;

 private:
  BodyMemory& memory_;
  observe::Counters& counters_;
  std::uint64_t taken_ = 0;
};

// Holds one body, or the beginning of a body. The buffer reserves its memory from a BodyMemory, and clear()
// gives the memory back.
class BodyBuffer {
 public:
  // `memory` and `counters` must outlive the buffer.
  BodyBuffer(BodyMemory& memory, observe::Counters& counters) noexcept
      : memory_(memory), counters_(counters) {}
  ~BodyBuffer() { clear(); }
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Appends a piece and returns true. If the bound of BodyMemory is reached, counts the failure, leaves the
  // buffer unchanged and returns false. `most`: the largest possible size of the whole body in bytes, as far
  // as the caller knows.
  [[nodiscard]] bool append(std::string_view piece, std::uint64_t most);
  [[nodiscard]] std::string_view view() const noexcept { return text_; }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  void clear() noexcept;

 private:
  // clear() keeps a block of up to this many bytes for the next body. BodyMemory does not count a kept block.
  static constexpr std::size_t kKept = 4 << 10;

  [[nodiscard]] bool grow(std::size_t size, std::uint64_t most);

  BodyMemory& memory_;
  observe::Counters& counters_;
  std::string text_;
  std::size_t taken_ = 0;  // bytes reserved in memory_
};

}  // namespace weir::proxy
