#include "cli/command_options.hpp"

#include "cli/servers_options.hpp"

#include "weir/base/version.hpp"

#include <memory>

#include <CLI/CLI.hpp>

namespace weir::cli {

namespace {

// Writes the positional arguments of a usage line by what they stand for, such as "[[METHOD] URL]".
class UsageFormatter : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    const bool many = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
    const auto type = option->get_type_name();  // such as "N:UINT in [1 - 240]"
    const auto shown = type.substr(0, type.find(':')) + (many ? " ..." : "");
    return option->get_required() ? shown : "[" + shown + "]";
  }
};

// The names of the option for the configuration file, for commands without another positional argument. The
// name FILE has no dashes, so the user may omit the option's name, as in weir check FILE.
constexpr const char* kFileAlone = "-c,--config,FILE";

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
      .add_option("--admin", words.typed_admin,
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

void declare_usual(CLI::App& app, Words& words) {
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
  auto* import = app.add_subcommand("import",
                                    "translate a configuration of nginx, or Ingresses with annotations of "
                                    "ingress-nginx; standard error says "
                                    "what has no equal");
  import->add_option("file", words.import.file, "nginx.conf, or a .yaml or .json file of Ingresses")
      ->required()
      ->type_name("FILE");
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
                   "first host that has a route; absent: GET / of a question")
      ->expected(0, 2)
      ->type_name("[METHOD] URL");
  explain->add_option("-H,--header", words.explain.headers, "header field, \"Name: value\"; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("LINE");
  explain->add_option("--ip", words.explain.ip, "address of the client, default 127.0.0.1")
      ->type_name("ADDR");
  explain->add_option("-d,--data", words.explain.body, "body, for rules that read it")->type_name("TEXT");
  explain
      ->add_option("--descriptor", words.explain.descriptor,
                   "explain a question instead, with this value in its descriptor; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  explain->add_option("--domain", words.explain.domain, "domain of the question")->type_name("NAME");
  explain->add_option("--cost", words.explain.cost, "cost that the question states")->type_name("N");
  explain->add_flag("--exact", words.explain.exact,
                    "the descriptor is one of Envoy's (serves = \"rls\"): a rule must name all its keys");
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

void declare_client_keys(CLI::App& app, Words& words) {
  auto* keys = app.add_subcommand(
      "client-keys", "list, set or remove the API keys of a running weir's keys file ([client] keys)");
  keys->require_subcommand(1);
  auto& options = words.client_keys;
  auto* list = keys->add_subcommand("list", "list the keys and their owners, without the keys themselves");
  auto* set = keys->add_subcommand(
      "set", "add a key, or give a key another owner or tier; what no option names stays as it is");
  auto* remove = keys->add_subcommand("remove", "remove a key");
  for (auto* command : {list, set, remove}) {
    declare_access(*command, words);
    command->add_flag("--json", options.json, "print JSON");
  }
  set->add_option("key", options.key,
                  "the key's id as list shows it; or sha256: and the 64 digits of its SHA-256; or - to read "
                  "the key from standard input")
      ->required()
      ->type_name("KEY");
  remove->add_option("key", options.key, "the key's id as list shows it")->required()->type_name("ID");
  // CLI11 would read an empty text into std::optional as if the option was not given.
  const auto declare = [&](const char* name, std::optional<std::string>& value, const char* help) {
    set->add_option_function<std::string>(
           name, [&value](const std::string& text) { value = text; }, help)
        ->type_name("TEXT");
  };
  declare("--user", options.owner.user, "user who owns the key; \"\": none");
  declare("--org", options.owner.org, "organisation of the owner; \"\": none");
  declare("--tier", options.owner.tier, "tier of the owner; \"\": none");
  declare("--service", options.owner.service, "service that owns the key; \"\": none");
}

}  // namespace

void declare_commands(CLI::App& app, Words& words) {
  app.formatter(std::make_shared<UsageFormatter>());
  declare_usual(app, words);
  declare_reload(app, words);
  declare_import(app, words);
  declare_inspection(app, words);
  declare_client_keys(app, words);
  declare_servers(app, words.servers, [&words](CLI::App& command) { declare_access(command, words); });
}

}  // namespace weir::cli
