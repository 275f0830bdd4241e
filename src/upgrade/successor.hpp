// The new process, seen by its parent: the same binary, from the same path and with the same arguments.
#pragma once

#include "weir/base/result.hpp"

#include <string>

#include <sys/types.h>

namespace weir::upgrade {

// Starts the process. Its descriptor `channel` has the number in Takeover::kVariable. No signal is blocked,
// and WATCHDOG_PID is not passed on. Blocks until the process runs or has failed to start.
[[nodiscard]] base::Result<pid_t> start_successor(int channel);

// Returns true if the process has ended by itself. Its status stays available.
[[nodiscard]] bool has_ended(pid_t successor) noexcept;

// Ends the process if it still runs, and waits for its end. Returns in words how it ended: "it ended with
// status 2".
[[nodiscard]] std::string end_successor(pid_t successor);

}  // namespace weir::upgrade
