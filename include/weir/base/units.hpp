// Durations and sizes, as the configuration writes them: "250ms", "64KiB".
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::base {

// Parses a whole number and a unit: "250ms", "2s", "5min", "1h", "7day" (also us, sec, m, hour, d, days). The
// maximum is 100 years.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

// Parses a number of bytes: "65536", "64KiB", "1MiB", "2GiB", "10kB", "5MB".
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);

// Returns the shortest exact text: "250ms", "2s".
[[nodiscard]] std::string to_string(Duration d);

// Returns a rounded text for people: "2500ms", "75s", "59min 16s", "3h 5min", "2d 1h". Rounds up to a
// multiple of the smallest unit in the text. REQUIRES: d >= 0.
[[nodiscard]] std::string to_readable(Duration d);

}  // namespace weir::base
