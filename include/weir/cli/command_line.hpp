// Parses the command line of weir and runs its command: `weir run`, `weir check` and so on.
#pragma once

namespace weir::cli {

// Returns the exit code: 0 for success, 1 for a failure such as a port in use, 2 for an error in the command
// line or the configuration.
int run_command_line(int argc, char** argv);

}  // namespace weir::cli
