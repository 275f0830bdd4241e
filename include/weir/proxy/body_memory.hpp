// The memory that bodies take while rules read them: one bound over all connections and workers.
//
// BodyMemory may be used by any thread. A BodyBuffer belongs to one worker.
#pragma once

#include "weir/observe/counters.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::proxy {

// The bound ([server] max_body_memory) and how much of it is taken, in bytes.
class BodyMemory {
 public:
  explicit BodyMemory(std::uint64_t most) noexcept : most_(most) {}

  // For a reload. What was taken before stays.
  void set_most(std::uint64_t most) noexcept { most_.store(most, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

  // Takes so many bytes. Returns false, and takes none, if that would exceed the bound.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> taken_{0};
};

// One body, or the beginning of it. What it holds in memory is taken from a BodyMemory until clear().
class BodyBuffer {
 public:
  // Both outlive it.
  BodyBuffer(BodyMemory& memory, observe::Counters& counters) noexcept
      : memory_(memory), counters_(counters) {}
  ~BodyBuffer() { clear(); }
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Returns false, and counts that, if the memory has no room; the buffer is then as it was. `most`: bytes
  // that the whole body comes to at most, as far as is known.
  [[nodiscard]] bool append(std::string_view piece, std::uint64_t most);
  [[nodiscard]] std::string_view view() const noexcept { return text_; }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  void clear() noexcept;

 private:
  // A block that is no larger stays for the next body, and is not counted meanwhile.
  static constexpr std::size_t kKept = 4 << 10;

  [[nodiscard]] bool grow(std::size_t size, std::uint64_t most);

  BodyMemory& memory_;
  observe::Counters& counters_;
  std::string text_;
  std::size_t taken_ = 0;  // bytes of the memory
};

}  // namespace weir::proxy
