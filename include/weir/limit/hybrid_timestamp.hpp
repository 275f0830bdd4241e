// The position of a change in the order of all changes of the key table. A replay uses these positions to
// apply a log of changes in their original order.
//
// A time in microseconds is not enough. Workers read the clock before they lock a shard. So of two charges of
// one key, the later one may have the earlier time, or both may have the same time. A HybridTimestamp is
// therefore the value of a hybrid logical clock (Kulkarni, Demirbas et al., "Logical Physical Clocks", 2014).
// The shards of the table are the processes of that clock:
//
//   63                    12 11        0
//   | µs since the epoch    | count     |      if the count overflows, the µs grow by one
//
// A change locks some shards. Its timestamp is higher than the timestamp that each of these shards has
// stored, and not before the change's own time. Then all these shards store the new timestamp. So the changes
// of one key are in exact order, and the changes of all keys are nearly in order of time.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::limit {

using HybridTimestamp = std::uint64_t;  // 0: no timestamp

inline constexpr unsigned kTimestampBits = 12;

// Returns the lowest timestamp of the instant `at`. REQUIRES: the epoch ≤ at < the year 2112.
[[nodiscard]] constexpr HybridTimestamp timestamp_at(base::TimePoint at) noexcept {
  return static_cast<HybridTimestamp>(at.time_since_epoch().count()) << kTimestampBits;
}
// Returns the timestamp of a change at `at` that follows a change with timestamp `last`.
[[nodiscard]] constexpr HybridTimestamp timestamp_after(HybridTimestamp last, base::TimePoint at) noexcept {
  return std::max(last + 1, timestamp_at(at));
}

}  // namespace weir::limit
