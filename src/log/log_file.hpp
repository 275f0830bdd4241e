// The file that the access log is appended to, or standard output. What is written is known when a call
// returns: nothing is kept back here.
//
// A disk that is full takes a part of a line and no more. Such a line is ended before the next one, so that
// it costs no other; so is one that somebody else has left behind.
//
// Belongs to one thread.
#pragma once

#include "weir/net/owned_descriptor.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::app {

class LogFile {
 public:
  // `name`: of a file, which is made where there is none; "-": standard output. Throws std::runtime_error
  // that names what cannot be opened.
  explicit LogFile(std::string name);

  struct Appended {
    std::size_t lost = 0;  // lines
    int error = 0;         // errno; 0: all is written
  };
  // REQUIRES whole lines. Waits for the reader of a pipe.
  [[nodiscard]] Appended append(std::string_view lines) noexcept;

  // Opens it anew by its name. Where it cannot be, the old one goes on: errno, else 0.
  [[nodiscard]] int reopen();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::size_t put(std::string_view text) noexcept;

  const std::string name_;
  net::OwnedDescriptor file_;
  bool torn_ = false;  // it ends within a line
};

}  // namespace weir::app
