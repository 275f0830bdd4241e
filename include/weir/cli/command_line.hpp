// The command line of weir: `weir run`, `weir check` and the other commands.
#pragma once

namespace weir::cli {

// Returns the exit code: 0 success, 1 failure (such as a port in use), 2 a wrong command line or
// configuration.
int run_command_line(int argc, char** argv);

}  // namespace weir::cli
