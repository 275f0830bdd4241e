// The lines of a log file, plain or as gzip wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::app {

class LogReader {
 public:
  // "-" is standard input. Throws std::runtime_error that names the file where it cannot be opened or read.
  explicit LogReader(const std::string& file);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // The next line, without its newline; nullopt at the end. Lives until the next call.
  [[nodiscard]] std::optional<std::string_view> next();
  // Octets of the file that were read, packed where it is packed.
  [[nodiscard]] std::uint64_t consumed() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Of all of them together, as they lie there; 0 where one has no size that is known before.
[[nodiscard]] std::uint64_t size_of_logs(const std::vector<std::string>& files);

// Two of the names that are one file on a disk, whose lines would count twice.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> find_same_log(
    const std::vector<std::string>& files);

}  // namespace weir::app
