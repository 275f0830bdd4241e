// Compares the verdicts of the log with those of the replay.
#pragma once

#include "replay/cases.hpp"

#include "weir/replay/replay.hpp"

#include <cstddef>

namespace weir::replay {

// Returns the report without `lines`, `unusable` and `resets`, which the caller must set. REQUIRES: the
// replay has charged all cases to the candidate's rules.
[[nodiscard]] Report compare(const Cases& all, const Candidate& candidate, std::size_t most_clients);

}  // namespace weir::replay
