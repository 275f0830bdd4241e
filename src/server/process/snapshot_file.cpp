#include "server/process/snapshot_file.hpp"

#include "server/process/file_replacement.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace weir::server {

namespace {

std::string in_words(int error) {
  return std::system_category().message(error);
}

class Stopwatch {
 public:
  [[nodiscard]] std::string read() const {
    const auto passed = std::chrono::steady_clock::now() - began_;
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()) + " ms";
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string count_of(std::uint64_t keys) {
  return std::to_string(keys) + (keys == 1 ? " key" : " keys");
}

}  // namespace

SnapshotFile::SnapshotFile(std::string path, std::span<const limit::SavedRule> rules, log::Log& log,
                           bool reads)
    : path_(std::move(path)), log_(log) {
  if (!path_.empty() && reads) open(rules);
}

SnapshotFile::~SnapshotFile() {
  close();
}

void SnapshotFile::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

// Opens the snapshot file. O_NONBLOCK is for a path that is a named pipe by mistake: without it, the call
// would wait for a writer.
void SnapshotFile::open(std::span<const limit::SavedRule> rules) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && errno == ENOENT)
    return log_.info("no snapshot at " + path_ + " yet; starting with empty limits");
  if (fd_ < 0) return set_aside("cannot be opened (" + in_words(errno) + ")");
  const auto checked = limit::check_snapshot(bytes(), rules);
  if (fault_ != 0) return set_aside("cannot be read (" + in_words(fault_) + ")");
  if (!checked) return set_aside(checked.error().message);
  found_ = *checked;
}

limit::ByteSource SnapshotFile::bytes() {
  ::lseek(fd_, 0, SEEK_SET);
  return [this](std::span<char> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const auto count = ::read(fd_, into.data() + filled, into.size() - filled);
      if (count == 0) break;
      if (count > 0) {
        filled += static_cast<std::size_t>(count);
      } else if (errno != EINTR) {
        fault_ = errno;
        break;
      }
    }
    return filled;
  };
}

void SnapshotFile::set_aside(const std::string& why) {
  close();
  const auto aside = path_ + ".damaged";
  const bool moved = ::rename(path_.c_str(), aside.c_str()) == 0;
  log_.warning("snapshot " + path_ + " " + why + "; " +
               (moved ? "renamed to " + aside : "it cannot be renamed either (" + in_words(errno) + ")") +
               "; starting with empty limits");
}

void SnapshotFile::restore(limit::KeyTable& table, std::span<const limit::SavedRule> rules,
                           const limit::RestoreAt& at, const limit::Adopt& adopt) {
  if (!found_) return;
  const Stopwatch stopwatch;
  const auto restored = limit::restore_snapshot(bytes(), rules, at, table, adopt);
  close();
  if (!restored)
    return log_.warning("snapshot " + path_ + " changed while it was read, and " + restored.error().message);
  auto line = "restored " + count_of(restored->keys) + " from " + path_ + " in " + stopwatch.read();
  if (restored->drained != 0) line += "; " + std::to_string(restored->drained) + " had expired";
  if (restored->changed != 0)
    line += "; " + std::to_string(restored->changed) + " belonged to removed or changed rules";
  if (at.shift.count() != 0)
    line += "; times shifted by " +
            std::to_string(std::chrono::round<std::chrono::seconds>(at.shift).count()) +
            " s, because the system clock was set";
  if (restored->left_out == 0) return log_.info(line);
  log_.warning(line + "; " + std::to_string(restored->left_out) + " did not fit; raise max_keys");
}

void SnapshotFile::save(const limit::KeyTable& table, const limit::Snapshot& snapshot,
                        std::span<const limit::SavedRule> rules) {
  if (path_.empty()) return;
  const Stopwatch stopwatch;
  FileReplacement file(path_);
  std::uint64_t keys = 0;
  if (file.fault() == 0)
    keys = limit::write_snapshot(table, snapshot, rules, [&](std::string_view more) { file.write(more); });
  file.take_its_place();
  if (file.fault() != 0)
    return log_.error("cannot write a snapshot to " + path_ + ": " + in_words(file.fault()));
  log_.info("saved " + count_of(keys) + " to " + path_ + " in " + stopwatch.read() + " (" +
            std::to_string(file.size()) + " bytes)");
}

}  // namespace weir::server
