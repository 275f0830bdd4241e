// The file that keeps a snapshot of the key table ([state.memory] snapshot).
#pragma once

#include <optional>
#include <string>

namespace weir::config {

// Returns the folder that holds the file; "." for a bare name.
[[nodiscard]] std::string folder_of(const std::string& path);

// Returns the reason why no snapshot can be written at the path; nullopt if nothing prevents it.
[[nodiscard]] std::optional<std::string> obstacle_to_snapshot(const std::string& path);

}  // namespace weir::config
