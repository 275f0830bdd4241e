// Where a change of the key table stands in the order of all of them, so that a log of changes can be done
// again in the order in which they were done first.
//
// The microsecond alone does not say it: workers read the clock before they lock, so of two charges of one
// key the later one may have the earlier time, and two may have the same. A turn is a hybrid logical clock
// (Kulkarni, Demirbas et al., "Logical Physical Clocks", 2014) whose processes are the table's shards:
//
//   63                    12 11        0
//   | µs since the epoch    | count     |      a count that overflows moves on to the next µs
//
// A change takes a turn beyond that of every shard that it locks, and not before its own time; the shards
// keep it. So whatever has to do with one key is ordered as it happened, all else nearly by time.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::limit {

using Turn = std::uint64_t;  // 0: none

inline constexpr unsigned kTurnBits = 12;

// The first turn of an instant. REQUIRES the epoch ≤ at < the year 2112.
[[nodiscard]] constexpr Turn turn_at(base::TimePoint at) noexcept {
  return static_cast<Turn>(at.time_since_epoch().count()) << kTurnBits;
}
// Of a change at `at` behind one that had the turn `last`.
[[nodiscard]] constexpr Turn turn_after(Turn last, base::TimePoint at) noexcept {
  return std::max(last + 1, turn_at(at));
}

}  // namespace weir::limit
