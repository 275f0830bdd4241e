// Durations, rates, sizes and attributes of keys as other proxies spell them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::app {

// Returns the duration or the rate that a text such as "5 minutes" or "10r/s" means, as it is written here:
// "5min", "10/s". Nothing where none is meant, or it is written so already.
[[nodiscard]] std::optional<std::string> nearest_duration(std::string_view text);
[[nodiscard]] std::optional<std::string> nearest_rate(std::string_view text);
// The same of a size: "16KiB" for "16k", as nginx counts it, and "5MB" for "5mb".
[[nodiscard]] std::optional<std::string> nearest_size(std::string_view text);

// Returns the attribute that a part of a key means, such as "ip" for "$binary_remote_addr"; empty where
// nothing is known.
[[nodiscard]] std::string attribute_for(std::string_view text);

}  // namespace weir::app
