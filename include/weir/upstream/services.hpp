// Makes the servers of an upstream from the SRV records of its service. Pure.
//
// A service is configured in UpstreamSettings::service. Until its first look-up has succeeded, the upstream
// has one server: the service itself, without an address.
#pragma once

#include "weir/net/service_lookup.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstdint>
#include <vector>

namespace weir::upstream {

// An upstream and its servers, whose addresses have been looked up: one server for each of settings.servers.
struct ResolvedUpstream {
  UpstreamSettings settings;
  std::vector<Server> servers;
};

// Returns the records that weir uses: the kMaxServers first ones by priority, then by weight. Uses the first
// of several records with the same target. The order of the result does not depend on the order of `records`.
[[nodiscard]] std::vector<net::ServiceRecord> choose_records(std::vector<net::ServiceRecord> records);

// Returns the settings with a server for each target. A server's weight is its record's weight, as a share of
// the largest weight of the same priority.
[[nodiscard]] UpstreamSettings with_targets(UpstreamSettings settings,
                                            const std::vector<net::ServiceTarget>& targets);

// Returns the name and the addresses of the server for each target, in the order of with_targets(). If
// `older` has a server with this name and with known addresses, uses these addresses. `older` may be null.
[[nodiscard]] std::vector<Server> servers_of(const std::vector<net::ServiceTarget>& targets,
                                             const ServerGroup* older);

// Must be called at a reload, with the group of the same upstream before the reload. Restores the order of
// each server's addresses, because name servers rotate addresses. If the look-up of a server's name has
// failed, takes over the server's addresses from `older`. If the look-up of the service has failed, takes
// over the servers from `older`.
void keep_known(ResolvedUpstream& upstream, const ServerGroup& older);

}  // namespace weir::upstream
