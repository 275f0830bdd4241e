// Shifts the instants of a snapshot from the clock of the old process to that of the new one.
//
// All instants move by the same duration, so what a client was told stays true. A fixed window ends where the
// new clock ends its window, if that is no further from the shifted end than the clocks are apart. Otherwise
// it ends at the shifted end, and the next window is a whole one of the new clock. Permits have no instant
// and stay as they are. Pure.
#pragma once

#include "weir/limit/saved.hpp"

namespace weir::limit {

struct TimeShift {
  base::Duration by{0};   // zero moves nothing
  base::TimePoint now{};  // by the new clock
};

[[nodiscard]] Cell shifted(const Limiter& limiter, const Cell& cell, const TimeShift& shift) noexcept;

// Returns the end of the window in which the cell counts a charge at `at`: the limiter's window, or the
// cell's own if a restore shifted it.
[[nodiscard]] base::TimePoint end_of_window(const FixedWindow& limiter, const Cell& cell,
                                            base::TimePoint at) noexcept;

// Shifts a key. A key names its rule but not which of the rule's limiters it belongs to. That is the limiter
// whose drained_at is closest to the saved one. REQUIRES: the rule has limiters.
void move(SavedKey& saved, const SavedRule& rule, const TimeShift& shift) noexcept;

}  // namespace weir::limit
