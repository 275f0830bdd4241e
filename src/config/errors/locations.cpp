#include "weir/config/locations.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/net/dns_lookup.hpp"

#include <utility>

namespace weir::config {

namespace {

// Returns the addresses that weir connects to first: the address of Redis, or those of the Sentinels or
// cluster nodes.
std::vector<base::Endpoint> redis_addresses(const Settings& settings) {
  if (!settings.state.redis) return {};
  const auto& redis = *settings.state.redis;
  switch (redis.topology) {
    case redis::Topology::Sentinel:
      return redis.sentinel.addresses;
    case redis::Topology::Cluster:
      return redis.nodes;
    case redis::Topology::Standalone:
      break;
  }
  return {redis.address};
}

}  // namespace

std::string name_of(const net::ListenerSettings& listener) {
  return "listener " + listener.address.to_string();
}

std::string name_of(const admin::AlertSettings& alert) {
  return "alert " + in_quotes(alert.name);
}

std::string name_of(const upstream::UpstreamSettings& upstream, const upstream::ServerSettings& server) {
  return "server " + server.address.to_string() + " of upstream \"" + upstream.name + "\"";
}

base::Error with_location(const Locations& locations, const std::string& whose, const base::Error& what) {
  const auto found = locations.find(whose);
  return found == locations.end() ? what : base::Error{found->second + ": " + what.message};
}

LookupResult look_up_servers(const Settings& settings) {
  std::vector<base::Endpoint> addresses;
  for (const auto& upstream : settings.upstreams)
    for (const auto& server : upstream.servers) addresses.push_back(server.address);
  auto answers = net::look_up_all(addresses, settings.server.nameservers);
  auto answer = answers.begin();
  LookupResult all;
  for (const auto& upstream : settings.upstreams) {
    auto& servers = all.servers.emplace_back();
    for (const auto& server : upstream.servers) {
      auto found = std::move(*answer++);
      servers.push_back({server.address.to_string(),
                         found ? std::move(found->addresses) : std::vector<net::RawEndpoint>{}});
      if (found) continue;
      const base::Error what{"upstream \"" + upstream.name + "\": " + found.error().message};
      (net::is_name(server.address) ? all.unknown : all.mistakes)
          .push_back(with_location(settings.locations, name_of(upstream, server), what).message);
    }
  }
  return all;
}

std::vector<std::string> find_unknown_names(const Settings& settings) {
  auto found = look_up_servers(settings);
  auto lines = std::move(found.unknown);
  lines.insert(lines.end(), found.mistakes.begin(), found.mistakes.end());
  const auto look_up = [&](const std::string& whose, const base::Endpoint& address, const std::string& key) {
    if (const auto known = net::resolve(address); !known)
      lines.push_back(
          with_location(settings.locations, whose, base::Error{key + known.error().message}).message);
  };
  for (const auto& listener : settings.listeners) look_up(name_of(listener), listener.address, "");
  if (settings.admin.address) look_up("[admin]", *settings.admin.address, "");
  for (const auto& address : redis_addresses(settings)) look_up("[state.redis]", address, "state.redis: ");
  for (const auto& alert : settings.alerts)
    look_up(name_of(alert), alert.webhook.address, name_of(alert) + ": webhook: ");
  return lines;
}

}  // namespace weir::config
