// The configuration of alerts: what each alert watches, and the webhook that it posts to.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/limit/gcra_core.hpp"
#include "weir/observe/surge.hpp"

#include <cstdint>
#include <string>

namespace weir::admin {

enum class AlertOn : std::uint8_t {
  Refusals,  // of a rule
  Upstream,  // failures of its servers, and their 5xx responses
  Redis,     // calls without a usable reply
};

// The receiver of messages.
struct Webhook {
  base::Endpoint address;
  bool tls = false;
  std::string target;         // "/path?query"
  std::string authorization;  // value of the header field; empty: no field
  std::string ca;             // PEM file of trusted authorities; empty: the system's
  friend bool operator==(const Webhook&, const Webhook&) = default;
};

struct AlertSettings {
  std::string name;
  AlertOn on = AlertOn::Refusals;
  std::string subject;  // name of the rule or upstream; "redis"
  observe::Surge::Settings surge;
  Webhook webhook;
  limit::GcraCore posts;  // limits how often posts may be attempted
  unsigned attempts = 5;
  base::Duration timeout{5'000'000};  // for each attempt
  friend bool operator==(const AlertSettings&, const AlertSettings&) = default;
};

// The state of an alert, for another weir process that continues it.
struct AlertState {
  std::string alert_id;  // identifies the alert: the same name and webhook give the same text
  bool firing = false;
  bool unsaid = false;  // the webhook does not know this state yet
  base::TimePoint since{};
  std::uint64_t seen = 0;  // count within the last period
  friend bool operator==(const AlertState&, const AlertState&) = default;
};

}  // namespace weir::admin
