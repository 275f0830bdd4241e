// Makes the servers of an upstream from the SRV records of its service. Pure.
//
// UpstreamSettings::service has the configured service. While no look-up has succeeded, the service itself
// stands for its servers, without an address.
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

// Returns the servers for with_targets(). A server that `older` has keeps the addresses that it has there, if
// any. `older` may be null.
[[nodiscard]] std::vector<Server> servers_of(const std::vector<net::ServiceTarget>& targets,
                                             const ServerGroup* older);

// Keeps what an older group of the same upstream knows, for a reload. Restores the order of each server's
// addresses, because name servers rotate addresses. Keeps the addresses of a name, or the servers of a
// service, whose look-up has failed.
void keep_known(ResolvedUpstream& upstream, const ServerGroup& older);

}  // namespace weir::upstream
