// The command that has a running weir give place to a new process of its binary.
#pragma once

#include "weir/base/time.hpp"
#include "weir/cli/inspect.hpp"

namespace weir::app {

// Asks the admin listener there for it and waits. The exit code of the process: 0 the new process serves, 1
// the old one goes on, for the reason on standard error.
int run_upgrade(const AdminAccess& access, base::Duration longest);

}  // namespace weir::app
