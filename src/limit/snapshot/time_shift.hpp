// Moves what a snapshot keeps from the clock that it was kept by to another one.
//
// Everything moves by the same length, so what a client was told stays true: so much is left, and so long it
// takes. A fixed window ends where the new clock has its window end, if that is no further from where its end
// moves to than the clocks are apart. Otherwise it ends where its end moves to, and the next window is a
// whole one of the new clock again. What is under way has no instant and stays. Pure.
#pragma once

#include "weir/limit/saved.hpp"

namespace weir::limit {

struct TimeShift {
  base::Duration by{0};   // zero: nothing moves
  base::TimePoint now{};  // by the new clock
};

[[nodiscard]] Cell shifted(const Limiter& limiter, const Cell& cell, const TimeShift& shift) noexcept;

// Returns the end of the window in which the cell counts what is charged at an instant: that of the limiter,
// or the cell's own where it was moved.
[[nodiscard]] base::TimePoint end_of_window(const FixedWindow& limiter, const Cell& cell,
                                            base::TimePoint at) noexcept;

// A key says of which rule it is, and not of which of its limiters. That is the one by which it drains when
// it says that it does. REQUIRES that the rule has limiters.
void move(SavedKey& saved, const SavedRule& rule, const TimeShift& shift) noexcept;

}  // namespace weir::limit
