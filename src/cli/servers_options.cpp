#include "cli/servers_options.hpp"

#include "weir/upstream/upstream_settings.hpp"

#include <CLI/CLI.hpp>

namespace weir::cli {

void declare_servers(CLI::App& app, ServersOptions& options,
                     const std::function<void(CLI::App& command)>& declare_access) {
  auto* servers = app.add_subcommand(
      "servers", "list the servers of a running weir, or drain, undrain or weigh one until it is restarted");
  servers->require_subcommand(0, 1);
  declare_access(*servers);
  servers->add_flag("--json", options.json, "print JSON");
  auto* list = servers->add_subcommand("list", "list the servers, as weir servers without a command does");
  declare_access(*list);
  list->add_flag("--json", options.json, "print JSON");
  const auto declare = [&](const char* name, const char* about) {
    auto* command = servers->add_subcommand(name, about);
    declare_access(*command);
    command->add_option("upstream", options.upstream, "name of the upstream")->required()->type_name("NAME");
    command->add_option("server", options.server, "address of the server, as weir servers lists it")
        ->required()
        ->type_name("ADDRESS");
    command->add_flag("--json", options.json, "print JSON");
    return command;
  };
  declare("drain", "send the server no further requests; those at it continue")->callback([&options] {
    options.drained = true;
  });
  declare("undrain", "send the server requests again")->callback([&options] { options.drained = false; });
  declare("weight", "set the server's share of the requests, relative to the other servers")
      ->add_option("weight", options.weight, "1 to 240; the configured weight restores its share")
      ->required()
      ->check(CLI::Range(1U, upstream::kFullServiceWeight))
      ->type_name("N");
}

}  // namespace weir::cli
