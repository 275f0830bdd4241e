#include "weir/upgrade/handed_alerts.hpp"

#include <sstream>

namespace weir::upgrade {

// Returns a line "ID FIRING UNSAID SINCE SEEN" for each alert. FIRING and UNSAID are 0 or 1; UNSAID is 1 if
// the alert's message about this state was not delivered. SINCE is in microseconds since the epoch, and SEEN
// is a number of events.
std::vector<std::string> lines_of(const std::vector<admin::AlertState>& alerts) {
  std::vector<std::string> lines;
  lines.reserve(alerts.size());
  for (const auto& alert : alerts)
    lines.push_back(alert.alert_id + (alert.firing ? " 1" : " 0") + (alert.unsaid ? " 1 " : " 0 ") +
                    std::to_string(alert.since.time_since_epoch().count()) + " " +
                    std::to_string(alert.seen));
  return lines;
}

std::vector<admin::AlertState> alerts_of(const std::vector<std::string>& lines) {
  std::vector<admin::AlertState> alerts;
  for (const auto& line : lines) {
    std::istringstream words(line);
    admin::AlertState alert;
    base::Duration::rep since = 0;
    if (!(words >> alert.alert_id >> alert.firing >> alert.unsaid >> since >> alert.seen)) continue;
    alert.since = base::TimePoint(base::Duration(since));
    alerts.push_back(std::move(alert));
  }
  return alerts;
}

}  // namespace weir::upgrade
