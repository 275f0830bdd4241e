// What `weir check --json` prints. One line of JSON with its newline.
#pragma once

#include "weir/config/settings.hpp"

#include <span>
#include <string>

namespace weir::app {

// Returns what was understood of a configuration, and all that is probably not meant. `unknown`: a line for
// each name that could not be looked up. `ok`: whether the command exits with 0.
[[nodiscard]] std::string check_json(const Settings& settings, std::span<const Warning> warnings,
                                     std::span<const std::string> unknown, bool ok);
// Returns what is wrong with it.
[[nodiscard]] std::string check_json(const ConfigError& error);

}  // namespace weir::app
