// Translates durations, rates, sizes and attributes from the spelling of other proxies into weir's spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

// Return a duration such as "5 minutes", or a rate such as "10r/s", in weir's spelling: "5min", "10/s".
// Return nullopt if the text is no duration or rate, or is in weir's spelling already.
[[nodiscard]] std::optional<std::string> nearest_duration(std::string_view text);
[[nodiscard]] std::optional<std::string> nearest_rate(std::string_view text);
// Returns a size in weir's spelling: "16KiB" for "16k" (1024 bytes each, as in nginx), "5MB" for "5mb".
// Returns nullopt if the text is no size, or is in weir's spelling already.
[[nodiscard]] std::optional<std::string> nearest_size(std::string_view text);
// Returns the size and the period that the text probably means: "1MB/s" for "1 mb per second". The result may
// be an invalid bandwidth. Returns nullopt if the text counts bits, such as "8Mb/s".
[[nodiscard]] std::optional<std::string> nearest_bandwidth(std::string_view text);

// Returns weir's attribute for a variable of another proxy, such as "ip" for "$binary_remote_addr". Returns
// an empty text if there is no such attribute.
[[nodiscard]] std::string attribute_for(std::string_view text);

}  // namespace weir::config
