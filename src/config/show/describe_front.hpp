// What was understood of all that stands before rules and behind them: listeners, whom weir believes, how
// much it takes, and whom it tells. Lines for `weir check`.
#pragma once

#include "weir/config/settings.hpp"

#include <cstdint>
#include <string>

namespace weir::app {

[[nodiscard]] std::string front_lines(const Settings& settings);
[[nodiscard]] std::string alert_lines(const Settings& settings);

// "64KiB", "1000 bytes".
[[nodiscard]] std::string size_words(std::uint64_t bytes);

}  // namespace weir::app
