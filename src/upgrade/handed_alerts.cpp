#include "weir/upgrade/handed_alerts.hpp"

#include "weir/base/hex.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

namespace weir::upgrade {

namespace {

// Reads the rest of an alert's line, "DIGEST TEXT". Returns nullopt if DIGEST is missing or invalid.
std::optional<observe::NamedClient> client_of(std::istringstream& words) {
  std::string digest, text;
  if (!(words >> digest)) return std::nullopt;
  const auto parsed = base::digest_of_hex(digest);
  if (!parsed) return std::nullopt;
  std::getline(words.ignore(), text);
  return observe::NamedClient{*parsed, std::move(text)};
}

}  // namespace

// Returns a line "ID FIRING UNSAID SINCE SEEN" for each of the first kMostAlertLines alerts. FIRING and
// UNSAID are 0 or 1; UNSAID is 1 if the message about the alert's present state was not delivered. SINCE is
// the time at which the alert last began to fire, in microseconds since the epoch. SEEN is the number of the
// alert's events within its last period. If the alert is about one client, " DIGEST TEXT" follows. TEXT may
// contain blanks.
std::vector<std::string> lines_of(const std::vector<admin::AlertState>& alerts) {
  std::vector<std::string> lines;
  const auto kept = std::min(alerts.size(), kMostAlertLines);
  lines.reserve(kept);
  for (const auto& alert : std::span(alerts).first(kept)) {
    auto& line = lines.emplace_back(
        alert.alert_id + (alert.firing ? " 1" : " 0") + (alert.undelivered ? " 1 " : " 0 ") +
        std::to_string(alert.since.time_since_epoch().count()) + " " + std::to_string(alert.seen));
    if (alert.client) line += " " + base::in_hex(alert.client->digest) + " " + alert.client->text;
  }
  return lines;
}

std::vector<admin::AlertState> alerts_of(const std::vector<std::string>& lines) {
  std::vector<admin::AlertState> alerts;
  for (const auto& line : lines) {
    std::istringstream words(line);
    admin::AlertState alert;
    base::Duration::rep since = 0;
    if (!(words >> alert.alert_id >> alert.firing >> alert.undelivered >> since >> alert.seen)) continue;
    alert.since = base::TimePoint(base::Duration(since));
    alert.client = client_of(words);
    alerts.push_back(std::move(alert));
  }
  return alerts;
}

}  // namespace weir::upgrade
