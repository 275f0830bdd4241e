// What alerts watch, and whom they tell: as configured.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/limit/spacing.hpp"
#include "weir/observe/surge.hpp"

#include <cstdint>
#include <string>

namespace weir::admin {

enum class AlertOn : std::uint8_t {
  Refusals,  // of a rule
  Upstream,  // its servers' failures, and their answers of 5xx
  Redis,     // calls that got no use of an answer
};

// Where messages go.
struct Webhook {
  base::Endpoint address;
  bool tls = false;
  std::string target;         // "/path?query"
  std::string authorization;  // the field's value; empty: none
  std::string ca;             // PEM: who signs its certificate; empty: whom the system trusts
  friend bool operator==(const Webhook&, const Webhook&) = default;
};

struct AlertSettings {
  std::string name;
  AlertOn on = AlertOn::Refusals;
  std::string subject;  // the rule's or the upstream's name; "redis"
  observe::Surge::Settings surge;
  Webhook webhook;
  limit::Spacing posts;  // how often one may be attempted
  unsigned attempts = 5;
  base::Duration timeout{5'000'000};  // of an attempt
  friend bool operator==(const AlertSettings&, const AlertSettings&) = default;
};

// How one stands, for another process of weir to go on with.
struct AlertStanding {
  std::string voice;  // which: the same name and webhook make the same word
  bool firing = false;
  bool unsaid = false;  // its webhook has not been told yet
  base::TimePoint since{};
  std::uint64_t seen = 0;  // within the last period
  friend bool operator==(const AlertStanding&, const AlertStanding&) = default;
};

}  // namespace weir::admin
