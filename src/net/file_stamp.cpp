#include "weir/net/file_stamp.hpp"

#include <sys/stat.h>

namespace weir::net {

FileStamp stamp_of(const std::string& path) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  struct ::stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .modified_ns = found.st_mtim.tv_sec * kNanos + found.st_mtim.tv_nsec,
          .mode = found.st_mode,
          .owner = found.st_uid,
          .group = found.st_gid,
          .size = found.st_size};
}

}  // namespace weir::net
