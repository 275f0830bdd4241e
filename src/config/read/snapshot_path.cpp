#include "weir/config/snapshot_path.hpp"

#include "weir/config/config_errors.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace weir::config {

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::optional<std::string> obstacle_to_snapshot(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return in_quotes(path) + ", which is a folder";
  const auto folder = folder_of(path);
  if (!std::filesystem::is_directory(folder, error))
    return "a file in " + in_quotes(folder) + ", which is not a folder";
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return "a file in " + in_quotes(folder) + ", where weir may not write (" +
           std::system_category().message(errno) + ")";
  return std::nullopt;
}

}  // namespace weir::config
