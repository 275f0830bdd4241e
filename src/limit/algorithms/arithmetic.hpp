// Integer arithmetic that several limiters share.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/gcra_core.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::limit {

inline constexpr std::uint64_t kHundredYears = 36'525ULL * 86'400 * 1'000'000;  // µs

// Returns ⌊a / b⌋. Uses the CPU's 64-bit division if both operands fit, which is nearly always so.
constexpr Ticks divide(Ticks a, std::uint64_t b) noexcept {
  constexpr Ticks kMost64 = std::numeric_limits<std::uint64_t>::max();
  return a <= kMost64 ? static_cast<std::uint64_t>(a) / b : a / b;
}

constexpr Ticks divide_up(Ticks a, std::uint64_t b) noexcept {
  return divide(a + (b - 1), b);
}

// Returns by how much `value` exceeds `bound`, or 0 if `value` is not larger.
template <class T>
constexpr T beyond(T value, T bound) noexcept {
  return value > bound ? value - bound : 0;
}

constexpr std::uint64_t micros(base::TimePoint at) noexcept {
  return static_cast<std::uint64_t>(at.time_since_epoch().count());
}
constexpr std::uint64_t micros(base::Duration d) noexcept {
  return static_cast<std::uint64_t>(d.count());
}
constexpr base::TimePoint instant(std::uint64_t us) noexcept {
  return base::TimePoint(base::Duration(static_cast<std::int64_t>(us)));
}

// Convert between the state of a key (a cell) and its 128-bit theoretical arrival time (limit/gcra_core.hpp).
constexpr Ticks tat_of(const Cell& cell) noexcept {
  return (Ticks{cell.words[1]} << 64) | cell.words[0];
}
constexpr Cell cell_of(Ticks tat) noexcept {
  return {{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}};
}

}  // namespace weir::limit
