// The configuration of alerts: the events that each alert counts, and the webhook to which it posts.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/limit/gcra_core.hpp"
#include "weir/observe/client_surges.hpp"
#include "weir/observe/surge.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::admin {

// The events that an alert counts.
enum class AlertOn : std::uint8_t {
  Refusals,        // refusals of a rule
  ClientRefusals,  // refusals of a rule, counted for each client separately
  Upstream,        // failures of an upstream's servers, and their 5xx responses
  Redis,           // calls to Redis that got no usable reply
};

// The receiver of an alert's messages.
struct Webhook {
  base::Endpoint address;
  bool tls = false;
  std::string target;         // "/path?query"
  std::string authorization;  // value of the Authorization header field; empty: the field is not sent
  std::string ca;             // PEM file of trusted authorities; empty: the system's authorities
  friend bool operator==(const Webhook&, const Webhook&) = default;
};

struct AlertSettings {
  std::string name;
  AlertOn on = AlertOn::Refusals;
  std::string subject;  // name of the rule or upstream; "redis" for AlertOn::Redis
  observe::Surge::Settings surge;
  // for ClientRefusals: the largest number of clients for which the alert fires at the same time
  std::size_t max_clients = 10;
  Webhook webhook;
  limit::GcraCore posts;  // limits how often weir may post for this alert
  unsigned attempts = 5;
  base::Duration timeout{5'000'000};  // time limit of each attempt
  friend bool operator==(const AlertSettings&, const AlertSettings&) = default;
};

// The state of an alert, which an upgrade passes to the new process.
struct AlertState {
  std::string alert_id;  // alerts with the same name and webhook have the same ID in all processes
  bool firing = false;
  bool undelivered = false;  // true: no message about this state was delivered to the webhook yet
  // When the alert last began to fire.
  base::TimePoint since{};
  std::uint64_t seen = 0;  // number of events within the last period
  // AlertOn::ClientRefusals: the client to which the state belongs.
  std::optional<observe::NamedClient> client{};
  friend bool operator==(const AlertState&, const AlertState&) = default;
};

}  // namespace weir::admin
