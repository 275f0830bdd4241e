// Converts the states of alerts to lines of text and back, for an upgrade. Each line has the state of one
// alert.
#pragma once

#include "weir/admin/alert_settings.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace weir::upgrade {

// The maximum number of lines, which all must fit into one message (upgrade_channel.hpp). The states of
// further alerts are not handed over, so these alerts begin in their initial state.
inline constexpr std::size_t kMostAlertLines = 300;

[[nodiscard]] std::vector<std::string> lines_of(const std::vector<admin::AlertState>& alerts);
// Returns the states that the lines describe. Skips lines that have another form.
[[nodiscard]] std::vector<admin::AlertState> alerts_of(const std::vector<std::string>& lines);

}  // namespace weir::upgrade
