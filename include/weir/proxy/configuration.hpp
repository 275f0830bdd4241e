// The proxy's part of the configuration. Immutable and shared by all workers.
#pragma once

#include "weir/http/cors.hpp"
#include "weir/observe/trace.hpp"
#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/priority.hpp"
#include "weir/policy/redaction.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rule_finder.hpp"
#include "weir/proxy/server_settings.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace weir::proxy {

struct Configuration {
  ServerSettings server;
  std::optional<http::CorsSettings> cors;
  policy::ClientSettings client;
  std::vector<policy::Route> routes;
  policy::RouteFinder route_finder;  // chooses among `routes`; a default-constructed finder tests all routes
  policy::TierPriorities tier_priorities;
  std::vector<policy::Rule> rules;
  policy::RuleFinder rule_finder;  // finds rules in `rules`; a default-constructed finder returns all rules
  bool elastic = false;            // true: some rule depends on the load
  // The share of its limit that each rule with `adapt` grants now. The shares change while the configuration
  // is in use. Null: every rule grants its whole limit.
  const limit::Factors* factors = nullptr;
  bool inspects = false;                     // true: some rule reads request bodies
  policy::BodyNames body_names;              // the names of the values in bodies that the rules read
  bool certificates = false;                 // true: some route writes the client's certificate
  bool settles = false;                      // true: the response corrects the charge of some rule
  std::optional<observe::Sampling> tracing;  // absent: no request has a span
  policy::Redaction redaction;               // hides values in the request targets of the access log
  policy::NamingKeys names;
  // True if names.shared is the secret key that all weirs with this Redis use. If false, weir treats Redis as
  // unavailable.
  bool names_agreed = true;
  base::SipKey balance;  // the secret key that hashes clients' names for balance = "hash"
  std::vector<upstream::UpstreamSettings> upstreams;
  // For each route and each upstream: its index in the counters. The index stays the same when a reload moves
  // the route or upstream to another position. If a list is empty, the index is the position in the
  // configuration.
  std::vector<std::size_t> route_indexes;
  std::vector<std::size_t> upstream_indexes;

  [[nodiscard]] std::size_t index_of_route(std::size_t route) const noexcept {
    return route_indexes.empty() ? route : route_indexes[route];
  }
  [[nodiscard]] std::size_t index_of_upstream(std::size_t upstream) const noexcept {
    return upstream_indexes.empty() ? upstream : upstream_indexes[upstream];
  }
};

}  // namespace weir::proxy
