// What the log says against what the replay says.
#pragma once

#include "replay/cases.hpp"

#include "weir/replay/replay.hpp"

#include <cstddef>

namespace weir::replay {

// All of a report but what it says of lines. REQUIRES that all cases have been charged.
[[nodiscard]] Report compare(const Cases& all, const Candidate& candidate, std::size_t most_clients);

}  // namespace weir::replay
