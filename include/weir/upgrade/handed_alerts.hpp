// Alerts on their way to the process that takes over: a line each.
#pragma once

#include "weir/admin/alert_settings.hpp"

#include <string>
#include <vector>

namespace weir::app {

[[nodiscard]] std::vector<std::string> lines_of(const std::vector<admin::AlertStanding>& alerts);
// Without those lines that are none of these.
[[nodiscard]] std::vector<admin::AlertStanding> alerts_of(const std::vector<std::string>& lines);

}  // namespace weir::app
