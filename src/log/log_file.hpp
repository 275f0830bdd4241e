// The file of the access log, or standard output. No data is buffered here: a call returns after the write.
//
// A full disk may take only a part of a line. The next write ends that line first, so that the next line
// stays readable. The same applies to an incomplete line that another process left.
//
// Belongs to one thread.
#pragma once

#include "weir/net/owned_descriptor.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::log {

class LogFile {
 public:
  // `name`: a file, which is created if it does not exist; "-": standard output. Throws std::runtime_error
  // that names the file if it cannot be opened.
  explicit LogFile(std::string name);

  struct Appended {
    std::size_t lost = 0;  // lines
    int error = 0;         // errno; 0: all lines are written
  };
  // Appends lines. Blocks while the reader of a pipe is slow. REQUIRES whole lines.
  [[nodiscard]] Appended append(std::string_view lines) noexcept;

  // Opens the file again by its name, and returns 0. On failure returns errno and keeps the old file.
  [[nodiscard]] int reopen();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::size_t put(std::string_view text) noexcept;

  const std::string name_;
  net::OwnedDescriptor file_;
  bool torn_ = false;  // the file ends within a line
};

}  // namespace weir::log
