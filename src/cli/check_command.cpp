#include "cli/check_command.hpp"

#include "cli/check_json.hpp"
#include "cli/exit_status.hpp"

#include "weir/config/locations.hpp"
#include "weir/config/settings.hpp"
#include "weir/log/access_log.hpp"
#include "weir/server/certificates.hpp"
#include "weir/server/client_files.hpp"

#include <chrono>
#include <iostream>
#include <vector>

namespace weir::cli {

namespace {

// Returns all warnings about a configuration, including warnings that depend on the time or on other files of
// this machine.
std::vector<config::Warning> warnings_of(const config::Settings& settings, const std::string& file) {
  auto warnings = settings.warnings;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (const auto& doubt : server::find_warnings(settings.listeners, now)) warnings.push_back({file, doubt});
  for (const auto& doubt : server::warn_of_own_certificates(settings, now)) warnings.push_back({file, doubt});
  if (const auto fault = log::AccessLog::fault_of(settings.log.access); !fault.empty())
    warnings.push_back(
        {file, "log.access: " + fault +
                   "; make it writable for the user that runs weir, otherwise weir does not start"});
  return warnings;
}

int check(const std::string& file, const CheckOptions& options) {
  const auto settings = config::load_settings(file);
  const auto warnings = warnings_of(settings, file);
  const auto unknown = options.resolve ? config::find_unknown_names(settings) : std::vector<std::string>{};
  const bool ok = unknown.empty() && (!options.strict || warnings.empty());
  std::cout << (options.json ? check_json(settings, warnings, unknown, ok) : describe(settings))
            << std::flush;
  for (const auto& [where, what] : warnings) std::cerr << where << ": warning: " << what << '\n';
  for (const auto& line : unknown) std::cerr << line << '\n';
  return ok ? kDone : kFailed;
}

}  // namespace

int run_check(const std::string& file, const CheckOptions& options) {
  try {
    return check(file, options);
  } catch (const config::ConfigError& error) {
    if (options.json) std::cout << check_json(error) << std::flush;
    throw;
  }
}

}  // namespace weir::cli
