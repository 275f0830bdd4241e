// The file of the access log, or standard output. Nothing is buffered here: append() returns after the data
// is written.
//
// If the disk is full, append() may write only a part of a line. The next append() then begins with a line
// break, so that its own lines stay readable. The same happens if another process has left an incomplete
// line.
//
// The access log owns the file; only its writing thread uses the file.
#pragma once

#include "weir/net/owned_descriptor.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::log {

class LogFile {
 public:
  // `name`: "-" for standard output, or the name of a file, which is created if it does not exist. Throws
  // std::runtime_error with the name if the file cannot be opened.
  explicit LogFile(std::string name);

  struct Appended {
    std::size_t lost = 0;  // how many lines were not written
    int error = 0;         // errno of the failed write; 0: all lines were written
  };
  // Appends lines. Blocks if the file is a pipe with a slow reader. REQUIRES that `lines` ends with a line
  // break.
  [[nodiscard]] Appended append(std::string_view lines) noexcept;

  // Opens the file again by its name and returns 0. If the file cannot be opened, returns errno and keeps the
  // old file.
  [[nodiscard]] int reopen();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::size_t put(std::string_view text) noexcept;

  const std::string name_;
  net::OwnedDescriptor file_;
  bool torn_ = false;  // true: the file ends with an incomplete line
};

}  // namespace weir::log
