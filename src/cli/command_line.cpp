#include "weir/cli/command_line.hpp"

#include "cli/check_command.hpp"
#include "cli/command_options.hpp"
#include "cli/exit_status.hpp"
#include "cli/top/top_command.hpp"

#include "weir/base/units.hpp"
#include "weir/base/version.hpp"
#include "weir/cli/commands.hpp"
#include "weir/cli/inspect.hpp"
#include "weir/cli/reload_command.hpp"
#include "weir/cli/upgrade_command.hpp"
#include "weir/config/config_errors.hpp"
#include "weir/config/schema_json.hpp"
#include "weir/config/settings.hpp"
#include "weir/config/settings_needs.hpp"
#include "weir/server/run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace weir::cli {

namespace {

int wrong(const std::string& what) {
  std::cerr << "weir: " << what
            << "\nweir --help lists the commands, weir COMMAND --help the options of one\n";
  return kWrong;
}

int report(const config::ConfigError& error) {
  for (const auto& mistake : error.mistakes()) std::cerr << mistake << '\n';
  const auto count = error.mistakes().size();
  std::cerr << "weir: " << count << (count == 1 ? " mistake" : " mistakes") << " in the configuration\n";
  return kWrong;
}

int do_run(const Words& words) {
  return server::run(words.config);
}

int do_check(const Words& words) {
  return run_check(words.config, {.strict = words.strict, .json = words.json, .resolve = words.resolve});
}

int do_redis_check(const Words& words) {
  const auto settings = config::load_settings(words.config);
  if (settings.state.redis) return run_redis_check(settings, words.json);
  std::cerr << "weir: " << words.config << " has no [state] redis, so there is nothing to check\n";
  return kWrong;
}

int do_replay(const Words& words) {
  return run_replay(config::load_settings(words.config), words.replay);
}

int do_echo(const Words& words) {
  auto listen = base::parse_endpoint(words.listen);
  if (!listen) return wrong("--listen: " + listen.error().message);
  const auto delay = base::parse_duration(words.delay);
  if (!delay) return wrong("--delay: " + delay.error().message);
  return run_echo({std::move(*listen), words.workers, *delay, words.grpc});
}

int do_health(const Words& words) {
  const auto admin = base::parse_endpoint(words.admin);
  return admin ? run_health(*admin, words.ready) : wrong("--admin: " + admin.error().message);
}

int do_schema() {
  std::cout << config::schema_as_json();
  return kDone;
}

std::optional<config::Settings> file_of(const Words& words) {
  if (words.config.empty()) return std::nullopt;
  return config::load_settings(words.config);
}

std::optional<AdminAccess> access_of(const Words& words, const std::optional<config::Settings>& file) {
  auto found = find_access({words.typed_admin, words.token}, file ? &*file : nullptr);
  if (!found) throw CLI::ValidationError("--admin", found.error().message);
  return std::move(*found);
}

std::string nobody_to_ask(const Words& words) {
  return words.config + " has no [admin] address";
}

// Calls `use` with the admin listener's address. Returns 2 if the configuration has no admin listener.
template <class Use>
int with_admin(const Words& words, Use use) {
  const auto file = file_of(words);
  auto access = access_of(words, file);
  return access ? use(std::move(*access), file) : wrong(nobody_to_ask(words) + "; write --admin ADDR");
}

int do_top(const Words& words) {
  return with_admin(words, [&](AdminAccess access, const auto&) {
    return run_top({.admin = std::move(access.address),
                    .token = std::move(access.token),
                    .once = words.once,
                    .json = words.json,
                    .clients = words.clients});
  });
}

// Makes a running weir reload its configuration. If the user names the configuration file, checks the file
// first, and reloads only if the file has no mistake.
int do_reload(const Words& words) {
  std::optional<AdminAccess> access;
  try {
    const auto file = file_of(words);
    access = access_of(words, file);
  } catch (const config::ConfigError& error) {
    (void)report(error);
    std::cerr << "weir: the running configuration is unchanged\n";
    return kFailed;
  }
  if (access) return run_reload(*access);
  if (words.process != 0) return signal_reload(words.process);
  return wrong(nobody_to_ask(words) + "; write --admin ADDR, or --pid PID to send SIGHUP");
}

int do_keys(const CLI::App& app, const Words& words) {
  auto options = words.keys;
  options.reset = app.get_subcommand("keys")->got_subcommand("reset");
  return with_admin(words, [&](const AdminAccess& access, const auto&) { return run_keys(access, options); });
}

int do_client_keys(const CLI::App& app, const Words& words) {
  auto options = words.client_keys;
  const auto* command = app.get_subcommand("client-keys");
  options.action = command->got_subcommand("list")  ? ClientKeysOptions::Action::List
                   : command->got_subcommand("set") ? ClientKeysOptions::Action::Set
                                                    : ClientKeysOptions::Action::Remove;
  return with_admin(words,
                    [&](const AdminAccess& access, const auto&) { return run_client_keys(access, options); });
}

int do_explain(const Words& words) {
  return with_admin(
      words, [&](const AdminAccess& access, const auto&) { return run_explain(access, words.explain); });
}

// Upgrades a running weir. If the user names the configuration file, waits at most as long as the file's
// settings allow an upgrade to take. Otherwise waits at most kUnknown.
int do_upgrade(const Words& words) {
  constexpr std::chrono::minutes kUnknown{10};
  return with_admin(words, [&](const AdminAccess& access, const std::optional<config::Settings>& file) {
    return run_upgrade(access, file ? config::longest_upgrade(*file) : kUnknown);
  });
}

int do_version() {
  std::cout << base::version_text() << '\n';
  return kDone;
}

int obey(const CLI::App& app, const Words& words) {
  if (app.got_subcommand("run")) return do_run(words);
  if (app.got_subcommand("reload")) return do_reload(words);
  if (app.got_subcommand("upgrade")) return do_upgrade(words);
  if (app.got_subcommand("check")) return do_check(words);
  if (app.got_subcommand("import")) return run_import(words.import);
  if (app.got_subcommand("redis-check")) return do_redis_check(words);
  if (app.got_subcommand("explain")) return do_explain(words);
  if (app.got_subcommand("keys")) return do_keys(app, words);
  if (app.got_subcommand("client-keys")) return do_client_keys(app, words);
  if (app.got_subcommand("servers"))
    return with_admin(words,
                      [&](const auto& access, const auto&) { return run_servers(access, words.servers); });
  if (app.got_subcommand("replay")) return do_replay(words);
  if (app.got_subcommand("top")) return do_top(words);
  if (app.got_subcommand("echo")) return do_echo(words);
  if (app.got_subcommand("health")) return do_health(words);
  if (app.got_subcommand("schema")) return do_schema();
  return do_version();
}

std::string no_command(std::string_view word, std::span<const std::string_view> commands) {
  if (word.empty() || word.starts_with('-')) return "no command" + config::suggestion("", commands);
  return "there is no command " + config::in_quotes(word) + config::suggestion(word, commands);
}

// Returns the message for an option or argument that the user left out. `error`: the parser's message, such
// as
// "--config is required".
std::string missing(const CLI::App& app, std::string_view error) {
  std::string path;
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += command->get_name() + ": ";
  }
  const std::string name(error.substr(0, error.find(' ')));
  const auto* option = command->get_option_no_throw(name);
  if (option == nullptr) return path + std::string(error);
  const auto type = option->get_type_name();  // such as "N:UINT in [1 - 240]"
  return path + (option->get_positional() ? type.substr(0, type.find(':')) : name) +
         " is required: " + option->get_description();
}

// Prints the parser's error message. For an unknown command and a missing argument, prints weir's own
// message.
int explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string_view first = argc < 2 ? "" : argv[1];
  const bool known = std::find(kCommands.begin(), kCommands.end(), first) != kCommands.end();
  if (!known && (first.empty() || !first.starts_with('-'))) return wrong(no_command(first, kCommands));
  if (first == "keys" && app.get_subcommand("keys")->get_subcommands().empty())
    return wrong("keys: " + no_command(argc < 3 ? "" : argv[2], kCommandsOfKeys));
  if (first == "client-keys" && app.get_subcommand("client-keys")->get_subcommands().empty())
    return wrong("client-keys: " + no_command(argc < 3 ? "" : argv[2], kCommandsOfClientKeys));
  if (!known && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return wrong("there is no option " + config::in_quotes(first) + " before a command");
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return wrong(missing(app, error.what()));
  return wrong(error.what());
}

// Returns the exit code. A command whose output could not be written has failed, unless the command has
// changed something: then it has done its work all the same.
int with_output(const CLI::App& app, int code) {
  constexpr auto kChanges =
      std::to_array<std::string_view>({"reload", "upgrade", "keys", "client-keys", "servers"});
  if (code != kDone || std::cout.flush()) return code;
  std::cerr << "weir: standard output cannot be written\n";
  const auto commands = app.get_subcommands();
  const bool changed = !commands.empty() && std::find(kChanges.begin(), kChanges.end(),
                                                      commands.front()->get_name()) != kChanges.end();
  return changed ? kDone : kFailed;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("weir: a reverse proxy that limits requests exactly", "weir");
  Words words;
  declare_commands(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error, argc, argv);
  }
  try {
    return with_output(app, obey(app, words));
  } catch (const config::ConfigError& error) {
    return report(error);
  } catch (const CLI::ValidationError& error) {
    return wrong(error.what());
  } catch (const std::exception& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace weir::cli
