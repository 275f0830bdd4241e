#include "server/process/file_replacement.hpp"

#include "weir/config/snapshot_path.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace weir::server {

FileReplacement::FileReplacement(const std::string& path) : path_(path), draft_(path + ".new") {
  ::unlink(draft_.c_str());  // a weir process that was killed may have left this file
  fd_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd_ < 0) fail();
}

FileReplacement::~FileReplacement() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!done_) ::unlink(draft_.c_str());
}

void FileReplacement::take_owner_and_mode(const struct ::stat& other) {
  constexpr mode_t kPermissions = 07777;
  struct ::stat own {};
  if (fault_ == 0 && ::fstat(fd_, &own) != 0) fail();
  // Calls fchown() only if the owner or the group differs, because the system call filter of
  // packaging/weir.service refuses fchown().
  const bool differs = own.st_uid != other.st_uid || own.st_gid != other.st_gid;
  if (fault_ == 0 && differs && ::fchown(fd_, other.st_uid, other.st_gid) != 0) fail();
  if (fault_ == 0 && ::fchmod(fd_, other.st_mode & kPermissions) != 0) fail();
}

void FileReplacement::write(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty() && fault_ == 0) {
    const auto count = ::write(fd_, bytes.data(), bytes.size());
    if (count > 0)
      bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      fail();
  }
}

void FileReplacement::take_its_place() {
  if (fault_ == 0 && ::fsync(fd_) != 0) fail();
  if (fault_ == 0 && ::rename(draft_.c_str(), path_.c_str()) != 0) fail();
  if (fault_ != 0) return;
  done_ = true;
  const int folder = ::open(config::folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return fail();
  if (::fsync(folder) != 0) fail();
  ::close(folder);
}

void FileReplacement::fail() {
  fault_ = errno;
}

}  // namespace weir::server
