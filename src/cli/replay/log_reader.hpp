// Reads the lines of a log file, plain or compressed by gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::cli {

class LogReader {
 public:
  // Opens the file; "-" means standard input. Throws std::runtime_error if the file cannot be opened or read.
  // The message names the file.
  explicit LogReader(const std::string& file);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Returns the next line without its newline; nullopt at the end of the file. The result is valid until the
  // next call. Throws std::runtime_error if the file cannot be read.
  [[nodiscard]] std::optional<std::string_view> next();
  // Returns the number of bytes read from the file. For a compressed file, this is the number of compressed
  // bytes.
  [[nodiscard]] std::uint64_t consumed() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the size of all files together. For compressed files, this is their compressed size. Returns 0 if
// the size of a file is unknown before the file is read, as for a pipe.
[[nodiscard]] std::uint64_t size_of_logs(const std::vector<std::string>& files);

// Returns two elements of `files` that name the same file on disk; nullopt if all files differ. The lines of
// such a file would count twice.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> find_same_log(
    const std::vector<std::string>& files);

}  // namespace weir::cli
