// Detects whether a file was written, replaced or made readable since it was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::net {

// A value that changes when a file is written or replaced, or when its owner or permissions change. Follows
// symbolic links. All members are zero if no regular file has that name.
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

// Returns a file's present stamp. Does not open the file, because opening a named pipe would wait for a
// writer.
[[nodiscard]] FileStamp stamp_of(const std::string& path);

}  // namespace weir::net
