// The terminal of a view that is shown anew each second. One thread at a time, and one such view a process.
#pragma once

#include "cli/top/top_frame.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <chrono>
#include <csignal>

#include <termios.h>

namespace weir::app {

// SIGTERM, SIGHUP, SIGINT and SIGQUIT wait while this lives, and do what they always do once it has gone.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Readable while one of them waits.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  sigset_t before_{};
  net::OwnedDescriptor descriptor_;
};

// Keys come as they are pressed, on a screen of its own; given back on the way out, whatever ends the view.
class Terminal {
 public:
  // Throws std::runtime_error where standard input is no terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // True when a key or a signal told it to end before the time is over.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds wait) const;
  [[nodiscard]] static Screen screen();

 private:
  HeldSignals signals_;  // goes last
  termios before_{};
};

}  // namespace weir::app
