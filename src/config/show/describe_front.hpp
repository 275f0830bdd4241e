// The parts of `weir check`'s output before and after the rules: listeners, trusted proxies, memory bounds,
// alerts.
#pragma once

#include "weir/config/settings.hpp"

#include <cstdint>
#include <string>

namespace weir::config {

[[nodiscard]] std::string front_lines(const Settings& settings);
[[nodiscard]] std::string alert_lines(const Settings& settings);

// Returns a size as text, such as "64KiB" or "1000 bytes".
[[nodiscard]] std::string size_words(std::uint64_t bytes);

}  // namespace weir::config
