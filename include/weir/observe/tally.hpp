// Numbers that one thread writes and any thread may read at any time.
//
// With a single writer, counting needs no read-modify-write instruction. A relaxed load and a relaxed store
// are plain moves, so counting is as cheap as an increment. A reader never sees a half-written number, but
// several numbers may be from different instants.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::observe {

// A counter that only grows, except that clear() resets it.
class Tally {
 public:
  void add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
  // Sets the counter to zero for another use. REQUIRES: no thread writes.
  void clear() noexcept { value_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// A counter for each enumerator of Kind. The enumerators have the values 0 to kCount - 1.
template <class Kind, std::size_t kCount>
class TallyOf {
 public:
  [[nodiscard]] Tally& operator()(Kind kind) noexcept { return tallies_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Tally& operator()(Kind kind) const noexcept {
    return tallies_[static_cast<std::size_t>(kind)];
  }

 private:
  std::array<Tally, kCount> tallies_;
};

// A number that can grow and shrink.
class Gauge {
 public:
  void add(std::int64_t amount = 1) noexcept { set(value() + amount); }
  void remove(std::int64_t amount = 1) noexcept { set(value() - amount); }
  void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Adds one to a gauge for the lifetime of this object.
class ScopedCount {
 public:
  explicit ScopedCount(Gauge& gauge) noexcept : gauge_(gauge) { gauge_.add(); }
  ~ScopedCount() { gauge_.remove(); }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;

 private:
  Gauge& gauge_;
};

}  // namespace weir::observe
