// The output of `weir check --json`: one line of JSON with its newline.
#pragma once

#include "weir/config/settings.hpp"

#include <span>
#include <string>

namespace weir::cli {

// Returns JSON that describes a configuration and its warnings. `unknown`: a line for each server name that
// could not be looked up. `ok`: true if the command returns 0.
[[nodiscard]] std::string check_json(const config::Settings& settings,
                                     std::span<const config::Warning> warnings,
                                     std::span<const std::string> unknown, bool ok);
// Returns JSON with the mistakes in a configuration.
[[nodiscard]] std::string check_json(const config::ConfigError& error);

}  // namespace weir::cli
