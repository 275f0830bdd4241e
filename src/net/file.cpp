#include "weir/net/file.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace weir::net {

namespace {

base::Error system_error(int number) {
  return base::Error{std::generic_category().message(number)};
}

std::string_view kind_of(mode_t mode) noexcept {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a directory";
  return "a device";
}

bool is_unnamed_pipe(int file) noexcept {
  struct statfs found {};
  return ::fstatfs(file, &found) == 0 && found.f_type == PIPEFS_MAGIC;
}

// Opens a regular file. Opens without waiting, because the name may be that of a named pipe, and opening a
// pipe would wait for a writer.
base::Result<OwnedDescriptor> open_file(const std::string& path, UnnamedPipe pipe) {
  OwnedDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int error = errno;
  const bool is_open = file.get() >= 0;
  struct stat found {};
  const int looked = is_open ? ::fstat(file.get(), &found) : ::stat(path.c_str(), &found);
  if (looked != 0) return system_error(is_open ? errno : error);
  if (S_ISREG(found.st_mode)) {
    if (!is_open) return system_error(error);
    return file;
  }
  const bool is_accepted = pipe == UnnamedPipe::Accept && is_open && is_unnamed_pipe(file.get());
  if (is_accepted && ::fcntl(file.get(), F_SETFL, 0) == 0) return file;
  return base::Error{"it is " + std::string(kind_of(found.st_mode)) + ", not a regular file"};
}

}  // namespace

base::Result<std::string> read_file(const std::string& path, std::size_t most, UnnamedPipe pipe) {
  const auto file = open_file(path, pipe);
  if (!file) return file.error();
  std::string text;
  std::array<char, 16 << 10> piece;
  while (text.size() <= most) {
    const auto count = ::read(file->get(), piece.data(), piece.size());
    if (count == 0) return {boost::system::in_place_value, std::move(text)};
    if (count > 0)
      text.append(piece.data(), static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return system_error(errno);
  }
  return base::Error{"it is larger than " + std::to_string(most >> 20) +
                     " MiB, which is the most that is read"};
}

std::optional<base::Error> fault_of_file(const std::string& path) {
  const auto file = open_file(path, UnnamedPipe::Reject);
  return file ? std::nullopt : std::optional(file.error());
}

}  // namespace weir::net
