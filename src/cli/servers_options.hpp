// Declares `weir servers` on the command line.
#pragma once

#include "weir/cli/inspect.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace weir::cli {

// Declares the command and its subcommands, which store what the user typed in `options`. `declare_access`:
// declares the options for the admin listener. All arguments must outlive the parse.
void declare_servers(CLI::App& app, ServersOptions& options,
                     const std::function<void(CLI::App& command)>& declare_access);

}  // namespace weir::cli
