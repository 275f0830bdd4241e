// The terminal of a view that weir draws again each second. Only one thread may use the terminal. A process
// may have only one view.
#pragma once

#include "cli/top/top_frame.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <chrono>
#include <csignal>

#include <termios.h>

namespace weir::cli {

// Blocks SIGTERM, SIGHUP, SIGINT and SIGQUIT while an object of this class exists. A signal that arrives
// meanwhile takes effect after the destructor.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // Returns a descriptor that is readable while a blocked signal is pending.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  sigset_t before_{};
  net::OwnedDescriptor descriptor_;
};

// Reads single key presses and draws on the terminal's alternate screen. The destructor restores the
// terminal.
class Terminal {
 public:
  // Throws std::runtime_error if standard input or standard output is not a terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits for at most this time. Returns true at once if a key press or a signal ends the view. Returns false
  // if the time has passed.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds wait) const;
  // Returns the terminal's present size.
  [[nodiscard]] static Screen screen();

 private:
  // Declared first, so that it is destroyed last. The terminal must be restored before signals take effect.
  BlockedSignals signals_;
  termios before_{};
};

}  // namespace weir::cli
