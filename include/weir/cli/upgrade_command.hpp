// The command `weir upgrade`, which lets a new process of the same binary take over from a running weir.
#pragma once

#include "weir/base/time.hpp"
#include "weir/cli/inspect.hpp"

namespace weir::cli {

// Requests an upgrade from the admin listener and waits at most `longest` for the result. Returns the exit
// code: 0 if the new process serves; 1 if the old process continues. Standard error then has the reason.
int run_upgrade(const AdminAccess& access, base::Duration longest);

}  // namespace weir::cli
