// The state of one key and what a step makes of it.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"

#include <array>
#include <cstdint>

namespace weir::limit {

// 16 bytes that only their limiter reads. All zero is fresh, for every algorithm.
struct Cell {
  std::array<std::uint64_t, 2> words{};
  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Step {
  Outcome outcome;
  Cell next;                   // to be stored when the request is charged
  base::TimePoint drained_at;  // from then on `next` equals a fresh cell and may be forgotten
};

// Of a key that something holds for an unknown time.
inline constexpr base::TimePoint kNever = base::TimePoint::max();

}  // namespace weir::limit
