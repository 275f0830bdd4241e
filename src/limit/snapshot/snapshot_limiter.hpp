// A limiter's parameters as words of a snapshot: the number of its algorithm, then what that is made of.
#pragma once

#include "limit/snapshot/snapshot_words.hpp"

#include "weir/limit/limiter.hpp"

#include <optional>

namespace weir::limit {

void put_limiter(WordWriter& out, const Limiter& limiter);

// Nullopt: no limiter has such parameters. One that counts by the calendar knows its zone by name alone: it
// says what a cell is worth, and begins no window.
[[nodiscard]] std::optional<Limiter> take_limiter(WordReader& in);

}  // namespace weir::limit
