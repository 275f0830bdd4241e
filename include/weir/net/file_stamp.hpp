// Tells whether a file was written, replaced or made readable since it was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::net {

// Differs after a file was written or replaced, or its owner or rights changed, also by way of a symbolic
// link. All zero: there is no regular file of that name.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  std::uint32_t mode = 0;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::int64_t size = 0;
  bool operator==(const FileStamp&) const = default;
};
using FileStamps = std::vector<FileStamp>;

// Returns the stamp of a file as it is now. Opens nothing: to open a pipe waits until somebody writes to it.
[[nodiscard]] FileStamp stamp_of(const std::string& path);

}  // namespace weir::net
