#include "weir/server/run.hpp"

#include "server/program.hpp"

#include "weir/config/locations.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace weir::server {

namespace {

// Returns the first mistake and the number of further mistakes, as text.
std::string first_of(const std::vector<std::string>& mistakes) {
  if (mistakes.empty()) return "the configuration is wrong";
  const auto more = mistakes.size() - 1;
  return mistakes.front() + (more != 0 ? "; and " + std::to_string(more) + " more" : "");
}

// Looks up the servers of all upstreams. `takes_over`: true if an old process still serves. In that case an
// unknown name prevents the start, because the old process can continue. Throws CannotStart.
config::LookupResult servers_of(const config::Settings& settings, bool takes_over) {
  auto found = config::look_up_servers(settings);
  if (!found.mistakes.empty()) throw config::CannotStart(first_of(found.mistakes));
  if (takes_over && !found.unknown.empty()) throw config::CannotStart(first_of(found.unknown));
  return found;
}

}  // namespace

int run(const std::string& file) {
  std::signal(SIGPIPE, SIG_IGN);
  // After this call, a write to a file at its size limit (LimitFSIZE=) fails instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Ignores these signals, which must not end the process before weir handles them. Later weir blocks them.
  // signalfd(2) receives a blocked signal even if it is ignored.
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  auto passed = upgrade::PassedSockets::of_environment();
  std::unique_ptr<upgrade::Takeover> takeover;
  try {
    takeover = upgrade::Takeover::of_environment();
    const auto settings = config::load_settings(file);
    Program program(settings, servers_of(settings, takeover != nullptr), file, std::move(passed),
                    takeover.get());
    return program.serve();
  } catch (const config::ConfigError& error) {
    if (takeover) takeover->fail(first_of(error.mistakes()));
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    if (takeover) takeover->fail(error.what());
    return 1;
  }
}

}  // namespace weir::server
