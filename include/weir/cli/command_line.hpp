// `weir run | check | echo | health | version`.
#pragma once

namespace weir::app {

// Exit codes: 0 done, 1 could not do it (a port in use), 2 a wrong command line or configuration.
int run_command_line(int argc, char** argv);

}  // namespace weir::app
