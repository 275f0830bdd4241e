// The state of one key, and the result of one step of a limiter.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"

#include <array>
#include <cstdint>

namespace weir::limit {

// The state of a key: 16 bytes that only its limiter interprets. In every algorithm, 16 zero bytes are the
// state of a fresh key.
struct Cell {
  std::array<std::uint64_t, 2> words{};
  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Step {
  Outcome outcome;
  Cell next;                   // the state to store if the request is charged; otherwise the old state stays
  base::TimePoint drained_at;  // from this instant on `next` equals a fresh cell, so the key may be evicted
};

// The value of drained_at for a state with concurrency permits, because nobody knows when requests will
// release them.
inline constexpr base::TimePoint kNever = base::TimePoint::max();

}  // namespace weir::limit
