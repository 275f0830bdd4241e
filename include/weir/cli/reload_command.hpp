// The command `weir reload`, which makes a running weir read its configuration again.
#pragma once

#include "weir/cli/inspect.hpp"

#include <sys/types.h>

namespace weir::cli {

// Requests a reload from the admin listener, waits for the result, and prints the changes. Returns the exit
// code:
// - 0: weir now uses the file's configuration.
// - 1: weir does not use this configuration, or did not reply. Standard error has the reasons.
// - 3: the reload takes longer than this command waits. weir's log shows the result.
int run_reload(const AdminAccess& access);

// Sends SIGHUP to a weir process that has no admin listener. Returns 0 if the signal was sent. Only weir's
// log shows the result of the reload.
int signal_reload(pid_t process);

}  // namespace weir::cli
