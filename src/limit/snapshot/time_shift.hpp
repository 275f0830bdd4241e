// Shifts the instants of a snapshot from the clock of the old process to the clock of the new process.
//
// All instants move by the same duration, TimeShift::by, so promises to clients stay true. Exceptions:
// * A fixed window may get the end of the limiter's present window instead of its shifted end. Condition: the
//   shifted end has not passed, and the two ends are at most |`by`| apart.
// * Permits of concurrency limits, which have no instant, stay as they are.
//
// Pure.
#pragma once

#include "weir/limit/saved.hpp"

namespace weir::limit {

struct TimeShift {
  base::Duration by{0};   // the duration to add to each instant; zero changes nothing
  base::TimePoint now{};  // the present time, by the new clock
};

[[nodiscard]] Cell shifted(const Limiter& limiter, const Cell& cell, const TimeShift& shift) noexcept;

// Returns the end of the window in which the cell counts a charge made at `at`. This is the end of the
// limiter's window, or of the cell's own window if a restore shifted the cell's window.
[[nodiscard]] base::TimePoint end_of_window(const FixedWindow& limiter, const Cell& cell,
                                            base::TimePoint at) noexcept;

// Shifts the instants of a key. A saved key names its rule, but not which of the rule's limiters its state
// belongs to. So this function assumes the limiter under which the state would drain (be fresh again) closest
// to the saved drained_at. REQUIRES: the rule has limiters.
void move(SavedKey& saved, const SavedRule& rule, const TimeShift& shift) noexcept;

}  // namespace weir::limit
