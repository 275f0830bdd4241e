// Where a snapshot of the table is kept ([state.memory] snapshot).
#pragma once

#include <optional>
#include <string>

namespace weir::app {

// Returns the folder that holds the file; "." for a bare name.
[[nodiscard]] std::string folder_of(const std::string& path);

// Returns why no snapshot could be written at the path, in words; nullopt where nothing prevents it.
[[nodiscard]] std::optional<std::string> obstacle_to_snapshot(const std::string& path);

}  // namespace weir::app
