// The command that has a running weir read its configuration anew.
#pragma once

#include "weir/cli/inspect.hpp"

#include <sys/types.h>

namespace weir::app {

// Asks the admin listener there for it, waits, and prints what changed. The exit code of the process: 0 the
// file is in force; 1 it is not, for the reasons on standard error, or nobody could be asked; 3 it is being
// read still, and whether it will be in force the log says.
int run_reload(const AdminAccess& access);

// Sends SIGHUP, where there is no admin listener to ask. 0: it was sent; what came of it the log says.
int signal_reload(pid_t process);

}  // namespace weir::app
