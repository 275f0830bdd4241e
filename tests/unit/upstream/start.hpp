// The time at which the clock of a test starts.
#pragma once

#include "weir/base/time.hpp"

namespace weir::upstream {

inline constexpr base::TimePoint kStart{base::Duration{1'700'000'000'000'000}};

}  // namespace weir::upstream
