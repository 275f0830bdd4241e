#include "weir/app/run.hpp"

#include "app/program.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

namespace weir::app {

namespace {

std::vector<std::vector<upstream::Server>> look_up_servers(const Settings& settings) {
  std::vector<std::vector<upstream::Server>> servers;
  for (const auto& upstream : settings.upstreams)
    servers.push_back(need(upstream::resolve_servers(upstream)));
  return servers;
}

}  // namespace

int run(const Settings& settings, const std::string& file) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGUSR2, SIG_IGN);  // of other servers' upgrades, and no reason to end
  try {
    Program program(settings, look_up_servers(settings), file);
    return program.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return 1;
  }
}

}  // namespace weir::app
