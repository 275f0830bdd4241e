// A rate: a number of units in a period. Both are whole numbers, as in the configuration, so "3/7s" stays
// exact.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::limit {

// The units that a request costs, 1 to kMaxCost.
using Cost = std::uint64_t;
inline constexpr Cost kMaxCost = Cost{1} << 31;

struct Rate {
  std::uint64_t count = 1;           // 1 to 10^9
  base::Duration period{1'000'000};  // 1 µs to 100 years
  friend bool operator==(const Rate&, const Rate&) = default;
};

// An instant or a duration in units of 1/count µs, so that no rounding is necessary (limit/gcra_core.hpp).
__extension__ using Ticks = unsigned __int128;

// Parses "10/s", "200/min", "20/10s", "3/7s", "10000/h" or "5/day".
[[nodiscard]] base::Result<Rate> parse_rate(std::string_view text);
[[nodiscard]] std::string to_string(const Rate& rate);

}  // namespace weir::limit
