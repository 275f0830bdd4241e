// The path of the file in which weir saves the key table ([state.memory] snapshot).
#pragma once

#include <optional>
#include <string>

namespace weir::config {

// Returns the folder in which the file is; "." for a name without a folder.
[[nodiscard]] std::string folder_of(const std::string& path);

// Returns why weir could not save a snapshot in this file; nullopt if nothing prevents it.
[[nodiscard]] std::optional<std::string> obstacle_to_snapshot(const std::string& path);

}  // namespace weir::config
