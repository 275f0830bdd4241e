// What the proxy works by: read once, then immutable and shared by all workers.
#pragma once

#include "weir/policy/evaluation.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/priority.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"
#include "weir/proxy/server_settings.hpp"
#include "weir/upstream/fleet.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <vector>

namespace weir::proxy {

struct Configuration {
  ServerSettings server;
  policy::ClientSettings client;
  std::vector<policy::Route> routes;
  policy::TierPriorities tier_priorities;
  std::vector<policy::Rule> rules;
  bool elastic = false;   // some rule looks at the load
  bool inspects = false;  // some rule looks at bodies
  bool settles = false;   // some rule's charge waits for the answer
  policy::NamingKeys names;
  base::SipKey balance;  // names of clients where balance = "hash"
  std::vector<upstream::UpstreamSettings> upstreams;
  std::vector<std::vector<upstream::Server>> servers;  // of each upstream, resolved
};

}  // namespace weir::proxy
