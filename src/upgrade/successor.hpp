// Starts and ends the new process of an upgrade. The new process runs the same binary, from the same path and
// with the same arguments.
#pragma once

#include "weir/base/result.hpp"

#include <string>

#include <sys/types.h>

namespace weir::upgrade {

// Starts the new process. The new process inherits `channel`, and the environment variable
// Takeover::kVariable contains the channel's descriptor number. The new process has no blocked signals and no
// WATCHDOG_PID. Blocks until the process runs or has failed to start.
[[nodiscard]] base::Result<pid_t> start_successor(int channel);

// Returns true if the process has ended. Its exit status remains available to end_successor().
[[nodiscard]] bool has_ended(pid_t successor) noexcept;

// Ends the process if it still runs, and waits until it has ended. Returns a text that says how the process
// ended, such as "it exited with status 2".
[[nodiscard]] std::string end_successor(pid_t successor);

}  // namespace weir::upgrade
