// Declares the commands of weir and their options for the parser CLI11.
#pragma once

#include "cli/admin_access.hpp"
#include "cli/import/import_command.hpp"
#include "cli/replay/replay_command.hpp"

#include "weir/cli/inspect.hpp"

#include <array>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace CLI {
class App;
}

namespace weir::cli {

inline constexpr std::array<std::string_view, 16> kCommands = {
    "run",         "reload",  "upgrade", "check",  "import", "redis-check", "explain", "keys",
    "client-keys", "servers", "top",     "replay", "echo",   "health",      "schema",  "version"};
inline constexpr std::array<std::string_view, 2> kCommandsOfKeys = {"show", "reset"};
inline constexpr std::array<std::string_view, 3> kCommandsOfClientKeys = {"list", "set", "remove"};

// The command line's options as texts, before other functions of weir parse them.
struct Words {
  std::string config;
  std::string listen;
  std::string delay = "0ms";
  std::string admin = kUsualAdmin;  // the option --admin of weir health
  // the option --admin of all commands but weir health; empty if the user did not type it
  std::string typed_admin;
  ExplainOptions explain;
  KeysOptions keys;
  ClientKeysOptions client_keys;
  ServersOptions servers;
  unsigned workers = 1;
  ReplayOptions replay;
  ImportOptions import;
  std::string token;
  pid_t process = 0;  // option of weir reload
  bool grpc = false;  // option of weir echo
  bool once = false;
  bool strict = false;   // option of weir check
  bool json = false;     // option of weir check, redis-check and top
  bool resolve = false;  // option of weir check
  bool ready = false;    // option of weir health
  unsigned clients = 5;
};

// Declares all commands. The parser writes the options into `words`, which must outlive `app`.
void declare_commands(CLI::App& app, Words& words);

}  // namespace weir::cli
