// The command `weir upgrade`, which makes a running weir hand over to a new process of its binary.
#pragma once

#include "weir/base/time.hpp"
#include "weir/cli/inspect.hpp"

namespace weir::cli {

// Asks the admin listener for an upgrade and waits. Returns the exit code: 0 if the new process serves; 1 if
// the old process continues, with the reason on standard error.
int run_upgrade(const AdminAccess& access, base::Duration longest);

}  // namespace weir::cli
