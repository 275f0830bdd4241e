// Writes a limiter to a snapshot and reads it back, as words: the number of its algorithm, then its
// parameters.
#pragma once

#include "limit/snapshot/snapshot_words.hpp"

#include "weir/limit/limiter.hpp"

#include <optional>

namespace weir::limit {

void put_limiter(WordWriter& out, const Limiter& limiter);

// Reads a limiter. Returns nullopt if no limiter can have these parameters. The snapshot stores a calendar
// only as the name of its zone. So a restored limiter with a calendar can interpret a key's state, but must
// not start a window.
[[nodiscard]] std::optional<Limiter> take_limiter(WordReader& in);

}  // namespace weir::limit
