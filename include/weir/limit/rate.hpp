// A rate: so many units in so long. Kept as the two whole numbers that were written, so that "3/7s" stays
// exact.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::limit {

// What a request costs, and what a limit counts. 1 to kMaxCost.
using Cost = std::uint64_t;
inline constexpr Cost kMaxCost = Cost{1} << 31;

struct Rate {
  std::uint64_t count = 1;           // 1 to 10^9
  base::Duration period{1'000'000};  // 1 µs to 100 years
  friend bool operator==(const Rate&, const Rate&) = default;
};

// An instant or a length in 1/count µs of a rate, so that nothing is rounded (limit/spacing.hpp).
__extension__ using Ticks = unsigned __int128;

// "10/s", "200/min", "20/10s", "3/7s", "10000/h", "5/day".
[[nodiscard]] base::Result<Rate> parse_rate(std::string_view text);
[[nodiscard]] std::string to_string(const Rate& rate);

}  // namespace weir::limit
