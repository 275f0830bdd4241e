// The states of alerts as lines of text, one each, for the process that takes over.
#pragma once

#include "weir/admin/alert_settings.hpp"

#include <string>
#include <vector>

namespace weir::upgrade {

[[nodiscard]] std::vector<std::string> lines_of(const std::vector<admin::AlertState>& alerts);
// Returns the states in the lines. Skips lines with other content.
[[nodiscard]] std::vector<admin::AlertState> alerts_of(const std::vector<std::string>& lines);

}  // namespace weir::upgrade
