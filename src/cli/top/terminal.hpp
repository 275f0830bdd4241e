// The terminal of a view that is drawn again each second. For one thread, and one view in a process.
#pragma once

#include "cli/top/top_frame.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <chrono>
#include <csignal>

#include <termios.h>

namespace weir::cli {

// Blocks SIGTERM, SIGHUP, SIGINT and SIGQUIT. After the destructor, signals that arrived have their usual
// effect.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // The descriptor is readable while a signal waits.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  sigset_t before_{};
  net::OwnedDescriptor descriptor_;
};

// Reads single keys and uses a separate screen. The destructor restores the terminal, however the view ends.
class Terminal {
 public:
  // Throws std::runtime_error if standard input is no terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits. Returns true early if a key or a signal asks for the end.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds wait) const;
  [[nodiscard]] static Screen screen();

 private:
  BlockedSignals signals_;  // is destroyed last
  termios before_{};
};

}  // namespace weir::cli
