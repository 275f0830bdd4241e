#include "weir/admin/sources.hpp"

#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace weir::admin {

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::optional<ProcessFigures> read_process_figures() {
  std::ifstream statm("/proc/self/statm");  // proc(5): size and resident, in pages
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (!(statm >> size >> resident)) return std::nullopt;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  std::error_code ec;
  std::uint64_t descriptors = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", ec), end; !ec && at != end; at.increment(ec))
    ++descriptors;
  if (ec) return std::nullopt;
  return ProcessFigures{.resident_bytes = resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
                        .open_descriptors = descriptors,
                        .most_descriptors = limit.rlim_cur,
                        .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace weir::admin
