// Translates durations, rates, sizes and attributes of keys from the spelling of other proxies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

// Return the duration or rate of a text such as "5 minutes" or "10r/s" in weir's spelling: "5min", "10/s".
// Return nullopt if the text means none, or is in weir's spelling already.
[[nodiscard]] std::optional<std::string> nearest_duration(std::string_view text);
[[nodiscard]] std::optional<std::string> nearest_rate(std::string_view text);
// Does the same for a size: "16KiB" for "16k" (nginx counts so), and "5MB" for "5mb".
[[nodiscard]] std::optional<std::string> nearest_size(std::string_view text);

// Returns the attribute that a part of a key means, such as "ip" for "$binary_remote_addr". Empty if none is
// known.
[[nodiscard]] std::string attribute_for(std::string_view text);

}  // namespace weir::config
