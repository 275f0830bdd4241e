// The command that has a running weir read its configuration anew.
#pragma once

#include "weir/app/inspect.hpp"

#include <chrono>

#include <sys/types.h>

namespace weir::app {

// After which whoever asked is told that the file is being read still: names of servers are looked up one
// after another, and a name server that is silent may take half a minute for each.
inline constexpr std::chrono::seconds kLongestReload{60};

// Asks the admin listener there for it, waits, and prints what changed. The exit code of the process: 0 the
// file is in force; 1 it is not, for the reasons on standard error, or nobody could be asked; 3 it is being
// read still, and whether it will be in force the log says.
int run_reload(const AdminAccess& access);

// Sends SIGHUP, where there is no admin listener to ask. 0: it was sent; what came of it the log says.
int signal_reload(pid_t process);

}  // namespace weir::app
