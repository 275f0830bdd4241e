// What `weir check --json` prints. One line of JSON with its newline.
#pragma once

#include "weir/app/settings.hpp"

#include <span>
#include <string>

namespace weir::app {

// Returns what was understood of a configuration, and all that is probably not meant.
[[nodiscard]] std::string check_json(const Settings& settings, std::span<const Warning> warnings);
// Returns what is wrong with it.
[[nodiscard]] std::string check_json(const ConfigError& error);

}  // namespace weir::app
