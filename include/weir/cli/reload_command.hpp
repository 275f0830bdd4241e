// The command `weir reload`, which makes a running weir read its configuration again.
#pragma once

#include "weir/cli/inspect.hpp"

#include <sys/types.h>

namespace weir::cli {

// Asks the admin listener for a reload, waits for the result, and prints the changes. Returns the exit code:
// - 0: weir uses the file's configuration.
// - 1: weir does not use it, or did not reply. Standard error has the reasons.
// - 3: the reload takes longer than weir waits. The log shows the result.
int run_reload(const AdminAccess& access);

// Sends SIGHUP to a weir that has no admin listener. Returns 0 if the signal was sent. Only the log shows the
// result of the reload.
int signal_reload(pid_t process);

}  // namespace weir::cli
