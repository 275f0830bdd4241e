// The command `weir reload`, which makes a running weir read its configuration again.
#pragma once

#include "weir/cli/inspect.hpp"

#include <sys/types.h>

namespace weir::cli {

// Asks the admin listener for a reload, waits, and prints the changes. Returns the exit code:
// - 0: the file is in use.
// - 1: the file is not in use, or weir did not answer. Standard error has the reasons.
// - 3: the reading takes longer. The log shows the result.
int run_reload(const AdminAccess& access);

// Sends SIGHUP instead, for a weir without admin listener. Returns 0 if the signal was sent. The log shows
// the result.
int signal_reload(pid_t process);

}  // namespace weir::cli
