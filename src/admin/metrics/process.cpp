#include "weir/admin/process.hpp"

#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::admin {

namespace {

constexpr const char* kDescriptors = "/proc/self/fd";

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Returns the number of open file descriptors. Does not count the descriptor that reads /proc/self/fd.
std::optional<std::uint64_t> count_descriptors() {
  std::error_code ec;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator at(kDescriptors, ec), end; !ec && at != end; at.increment(ec))
    ++count;
  if (ec || count == 0) return std::nullopt;
  return count - 1;
}

}  // namespace

// Returns the number of open descriptors, which is the size of the folder /proc/self/fd (proc(5)). Older
// kernels report 0 as that size; then this function counts the descriptors one by one.
std::optional<std::uint64_t> ProcessReader::open_descriptors(Clock::time_point now) {
  struct stat folder {};
  if (use_kernel_count_ && ::stat(kDescriptors, &folder) == 0 && folder.st_size > 0)
    return static_cast<std::uint64_t>(folder.st_size);
  if (!counted_ || now - counted_at_ >= kCountEvery) {
    counted_ = count_descriptors();
    counted_at_ = now;
  }
  return counted_;
}

std::optional<ProcessFigures> ProcessReader::read(Clock::time_point now) {
  // The first numbers in the file (proc(5)) are the virtual size and the resident size, in pages.
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (!(statm >> size >> resident)) return std::nullopt;
  statm.close();
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const auto descriptors = open_descriptors(now);
  if (!descriptors) return std::nullopt;
  return ProcessFigures{.resident_bytes = resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
                        .open_descriptors = *descriptors,
                        .most_descriptors = limit.rlim_cur,
                        .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace weir::admin
