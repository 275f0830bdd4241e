#include "weir/cli/command_line.hpp"

#include "cli/admin_access.hpp"
#include "cli/check_command.hpp"
#include "cli/exit_status.hpp"
#include "cli/import/import_command.hpp"
#include "cli/replay/replay_command.hpp"
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

constexpr std::array<std::string_view, 14> kCommands = {
    "run",  "reload", "upgrade", "check", "import", "redis-check", "explain",
    "keys", "top",    "replay",  "echo",  "health", "schema",      "version"};
constexpr std::array<std::string_view, 2> kCommandsOfKeys = {"show", "reset"};

// The names of the option for the configuration file, for commands that have no other positional argument.
// After such a command, the user may omit the option's name: weir check FILE.
constexpr const char* kFileAlone = "-c,--config,FILE";

// The values of the command line's options. Most are the texts that the user typed; other functions of weir
// parse them later.
struct Words {
  std::string config;
  std::string listen;
  std::string delay = "0ms";
  std::string admin = kUsualAdmin;  // option of weir health
  std::string asked;  // the option --admin of the other commands; empty if the user did not type it
  ExplainOptions explain;
  KeysOptions keys;
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

int wrong(const std::string& what) {
  std::cerr << "weir: " << what
            << "\nweir --help lists the commands, weir COMMAND --help the options of one\n";
  return kWrong;
}

// Declares the option for the configuration file. Both weir check FILE and weir check --config FILE work.
void declare_file(CLI::App& command, Words& words) {
  command.add_option(kFileAlone, words.config, "configuration file")->required()->type_name("FILE");
}

// Declares the options of commands that use the admin listener of a running weir. Typed options have priority
// over the file, and the file has priority over defaults. `file`: the names of the option for the file.
void declare_access(CLI::App& command, Words& words, const char* file = "-c,--config") {
  command
      .add_option(file, words.config, "configuration file of that weir, for its [admin] address and token")
      ->type_name("FILE");
  command
      .add_option("--admin", words.asked,
                  "address of the admin listener; default: the one in the file, or 127.0.0.1:9900")
      ->type_name("ADDR");
  command
      .add_option("--token", words.token,
                  "token of the admin listener; default: the one in the file, or the environment variable "
                  "WEIR_ADMIN_TOKEN")
      ->type_name("TEXT");
}

void declare_reload(CLI::App& app, Words& words) {
  auto* reload = app.add_subcommand(
      "reload",
      "reload the configuration of a running weir, and show what changed or what is wrong; exit 0: the new "
      "one is in force, 1: the old one stays, 3: weir still reads it");
  declare_access(*reload, words, kFileAlone);
  constexpr pid_t kMostProcess = 1 << 22;
  reload->add_option("--pid", words.process, "process that gets SIGHUP if the file has no [admin] address")
      ->check(CLI::Range(pid_t{1}, kMostProcess))
      ->type_name("N");
}

void declare(CLI::App& app, Words& words) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(base::version_text()));
  auto* run =
      app.add_subcommand("run", "serve requests until SIGTERM or SIGINT; then finish open requests and exit");
  declare_file(*run, words);
  auto* check = app.add_subcommand("check", "check a configuration and show how weir understands it");
  declare_file(*check, words);
  check->add_flag("--strict", words.strict, "exit with 1 if there is a warning");
  check->add_flag("--json", words.json, "print JSON");
  check->add_flag(
      "--resolve", words.resolve,
      "also look up the names of servers, listeners, Redis and webhooks; exit with 1 if a look-up fails");
  auto* redis = app.add_subcommand(
      "redis-check",
      "check that weir can use the Redis of a configuration; exit 0: yes, maybe with warnings; 1: no, or "
      "Redis does not answer; 2: the configuration is wrong or names no Redis");
  declare_file(*redis, words);
  redis->add_flag("--json", words.json, "print JSON");
  auto* replay = app.add_subcommand("replay",
                                    "run the requests of an access log through other rules, and show which "
                                    "of them would be decided differently");
  replay->add_option("-c,--config", words.config, "configuration file with the other rules")
      ->required()
      ->type_name("FILE");
  replay
      ->add_option("logs", words.replay.files,
                   "access logs of one weir or several, in any order; -: standard input")
      ->required()
      ->type_name("LOG");
  replay->add_flag("--json", words.replay.json, "print JSON");
  replay
      ->add_option("--clients", words.replay.clients,
                   "clients to list for each rule, those with most changes first; default 10")
      ->check(CLI::Range(0u, 1'000'000u))
      ->type_name("N");
  auto* top =
      app.add_subcommand("top", "show what a running weir does now and which clients it limits; q quits");
  declare_access(*top, words, kFileAlone);
  top->add_option("--clients", words.clients, "clients in each list")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  top->add_flag("--once", words.once, "print one frame, after a second, and exit");
  top->add_flag("--json", words.json, "print that frame as JSON");
  auto* echo = app.add_subcommand("echo", "run a small server for demos, tests and load tests");
  echo->add_option("--listen", words.listen, "host:port, [v6]:port or unix:/path")
      ->required()
      ->type_name("ADDR");
  echo->add_option("--workers", words.workers, "number of threads")
      ->check(CLI::Range(1u, 256u))
      ->type_name("N");
  echo->add_option("--delay", words.delay, "wait before each answer, such as 10ms")->type_name("DURATION");
  echo->add_flag("--grpc", words.grpc,
                 "answer gRPC calls (HTTP/2 without TLS) with their own messages; the metadata "
                 "x-grpc-status sets the status");
  auto* health = app.add_subcommand("health", "ask a running weir whether it works; exit 0: yes, 1: no");
  health->add_flag("--ready", words.ready,
                   "ask whether it is ready for requests: it has started and was not told to stop");
  health->add_option("--admin", words.admin, "address of the admin listener, default 127.0.0.1:9900")
      ->type_name("ADDR");
  app.add_subcommand("schema", "print the JSON Schema of the configuration, for editors");
  app.add_subcommand("version", "print the version, and the commit of the build");
}

void declare_import(CLI::App& app, Words& words) {
  auto* import = app.add_subcommand(
      "import", "translate a configuration of nginx; standard error says what has no equal");
  import->add_option("file", words.import.file, "the configuration")->required()->type_name("NGINX.CONF");
  import->add_option("-o,--output", words.import.output, "default: standard output")->type_name("FILE");
  import->add_flag("--force", words.import.force, "overwrite the file of --output");
}

void declare_inspection(CLI::App& app, Words& words) {
  auto* explain = app.add_subcommand(
      "explain", "ask a running weir what each rule would decide for a request; nothing is charged");
  declare_access(*explain, words);
  explain
      ->add_option("request", words.explain.request,
                   "method (default GET), and http://host/path?query or /path; for a /path weir takes the "
                   "first host that has a route")
      ->required()
      ->expected(1, 2)
      ->type_name("[METHOD] URL");
  explain->add_option("-H,--header", words.explain.headers, "header field, \"Name: value\"; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("LINE");
  explain->add_option("--ip", words.explain.ip, "address of the client, default 127.0.0.1")
      ->type_name("ADDR");
  explain->add_option("-d,--data", words.explain.body, "body, for rules that read it")->type_name("TEXT");
  explain->add_flag("--json", words.explain.json, "print JSON");
  auto* upgrade = app.add_subcommand(
      "upgrade",
      "replace a running weir by the binary that is now installed, without a refused connection and with all "
      "counts; exit 0: the new process serves, 1: the old one goes on");
  declare_access(*upgrade, words, kFileAlone);
  auto* keys = app.add_subcommand("keys", "show or reset the state of one key of a rule in a running weir");
  keys->require_subcommand(1);
  for (const auto what : kCommandsOfKeys) {
    auto* command =
        keys->add_subcommand(std::string(what), what == "show" ? "show what the key has used and what is left"
                                                               : "reset the key, and show what it had used");
    declare_access(*command, words);
    command->add_option("rule", words.keys.rule, "name of the rule")->required()->type_name("RULE");
    command
        ->add_option(
            "key", words.keys.key,
            "parts of the key in order, such as 203.0.113.7, or user:ada for \"api_key|user\"; or the client "
            "as weir top, the dashboard and the access log show it: a digest, or user:paula for her API key")
        ->type_name("PART");
    command->add_flag("--json", words.keys.json, "print JSON");
  }
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
  std::cout << config::schema_as_json() << std::flush;
  return std::cout ? kDone : kFailed;
}

std::optional<config::Settings> file_of(const Words& words) {
  if (words.config.empty()) return std::nullopt;
  return config::load_settings(words.config);
}

std::optional<AdminAccess> access_of(const Words& words, const std::optional<config::Settings>& file) {
  auto found = find_access({words.asked, words.token}, file ? &*file : nullptr);
  if (!found) throw CLI::ValidationError("--admin", found.error().message);
  return std::move(*found);
}

std::string nobody_to_ask(const Words& words) {
  return words.config + " has no [admin] address";
}

// Calls `use` with the admin listener's address. Returns 2 if the configuration has no admin listener.
template <class Use>
int ask_whom(const Words& words, Use use) {
  const auto file = file_of(words);
  auto access = access_of(words, file);
  return access ? use(std::move(*access), file) : wrong(nobody_to_ask(words) + "; write --admin ADDR");
}

int do_top(const Words& words) {
  return ask_whom(words, [&](AdminAccess access, const auto&) {
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
  return ask_whom(words, [&](const AdminAccess& access, const auto&) { return run_keys(access, options); });
}

int do_explain(const Words& words) {
  return ask_whom(words,
                  [&](const AdminAccess& access, const auto&) { return run_explain(access, words.explain); });
}

// Upgrades a running weir. The configuration says how long an upgrade may take. If the user names no
// configuration file, waits for kUnknown instead.
int do_upgrade(const Words& words) {
  constexpr std::chrono::minutes kUnknown{10};
  return ask_whom(words, [&](const AdminAccess& access, const std::optional<config::Settings>& file) {
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

// Prints the parser's error message. For an unknown command, prints weir's own message.
int explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string_view first = argc < 2 ? "" : argv[1];
  const bool known = std::find(kCommands.begin(), kCommands.end(), first) != kCommands.end();
  if (!known && (first.empty() || !first.starts_with('-'))) return wrong(no_command(first, kCommands));
  if (first == "keys" && app.get_subcommand("keys")->get_subcommands().empty())
    return wrong("keys: " + no_command(argc < 3 ? "" : argv[2], kCommandsOfKeys));
  return wrong(error.what());
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("weir: a reverse proxy that limits requests exactly", "weir");
  Words words;
  declare(app, words);
  declare_reload(app, words);
  declare_import(app, words);
  declare_inspection(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error, argc, argv);
  }
  try {
    return obey(app, words);
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
