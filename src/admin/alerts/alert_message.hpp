// The text of an alert's messages and log lines.
#pragma once

#include "admin/alerts/alert_registry.hpp"

#include <string>

namespace weir::admin {

// Returns the alert's name, and the client if this is the alert for one client: "login for client 83a5…
// (api_key of ada)".
[[nodiscard]] std::string title_of(const Alert& alert);

struct MessageFacts {
  observe::Surge::Change change;
  base::TimePoint at;
  const std::string& host;     // name of this machine
  const std::string& version;  // weir's version
};
// Returns the JSON that weir posts to the alert's webhook. docs/alerts.md describes it.
[[nodiscard]] std::string message_of(const Alert& alert, const MessageFacts& facts);

}  // namespace weir::admin
