#include "log/log_file.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

namespace weir::log {

namespace {

net::OwnedDescriptor open_to_append(const std::string& name) {
  // The file contains clients' data, so only its owner may write and only its group may read.
  constexpr mode_t kMode = 0640;
  if (name == "-") return net::OwnedDescriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  // Opens with O_NONBLOCK, because a pipe without a reader would otherwise block weir when it starts.
  return net::OwnedDescriptor(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, kMode));
}

bool ends_within_a_line(const std::string& name) {
  struct stat state {};
  if (::stat(name.c_str(), &state) != 0 || !S_ISREG(state.st_mode) || state.st_size == 0) return false;
  const net::OwnedDescriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  char last = '\n';
  return file.get() >= 0 && ::pread(file.get(), &last, 1, state.st_size - 1) == 1 && last != '\n';
}

bool wait_for_room(int file) noexcept {
  pollfd wanted{.fd = file, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, -1) >= 0 || errno == EINTR;
}

}  // namespace

LogFile::LogFile(std::string name) : name_(std::move(name)), file_(open_to_append(name_)) {
  const int error = errno;
  if (file_.get() < 0)
    throw std::runtime_error("access log: cannot open " + name_ + ": " +
                             std::generic_category().message(error));
  torn_ = ends_within_a_line(name_);
}

// Writes as much of the text as possible. Returns the number of written bytes. If some bytes were not
// written, errno has the reason.
std::size_t LogFile::put(std::string_view text) noexcept {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto written = ::write(file_.get(), text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
      continue;
    }
    if (written == 0) errno = ENOSPC;
    const bool goes_on = errno == EINTR || (errno == EAGAIN && wait_for_room(file_.get()));
    if (!goes_on) break;
  }
  return done;
}

LogFile::Appended LogFile::append(std::string_view lines) noexcept {
  const auto count = [](std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  if (lines.empty()) return {};
  if (torn_ && put("\n") == 0) return {.lost = count(lines), .error = errno};
  torn_ = false;
  const auto done = put(lines);
  if (done == lines.size()) return {};
  const int error = errno;
  torn_ = done != 0 && lines[done - 1] != '\n';
  auto rest = lines.substr(done);
  // If only the line break of a line is missing, the line does not count as lost: the next append() writes
  // the line break.
  if (rest.front() == '\n') rest.remove_prefix(1);
  return {.lost = count(rest), .error = error};
}

int LogFile::reopen() {
  if (name_ == "-") return 0;
  auto fresh = open_to_append(name_);
  if (fresh.get() < 0) return errno;
  file_ = std::move(fresh);
  torn_ = ends_within_a_line(name_);
  return 0;
}

}  // namespace weir::log
