// Quantities as they are written in the configuration: "250ms", "64KiB", "1_000".
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::base {

// "250ms", "2s", "5min", "1h", "7day" (also us, m, d, days). A whole number and a unit; at most 100 years.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

// "65536", "64KiB", "1MiB", "2GiB", "10kB", "5MB": bytes.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);

// The shortest exact spelling: "250ms", "2s".
[[nodiscard]] std::string to_string(Duration d);

// For people: "2500ms", "75s", "59min 16s", "3h 5min", "2d 1h". Rounded up, to milliseconds or to the second
// of its units. REQUIRES that it is not negative.
[[nodiscard]] std::string to_readable(Duration d);

}  // namespace weir::base
