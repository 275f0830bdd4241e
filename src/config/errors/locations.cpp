#include "weir/config/locations.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/net/dns_lookup.hpp"
#include "weir/net/service_lookup.hpp"
#include "weir/upstream/resolution.hpp"

#include <future>
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
  return "server " + server.name() + " of upstream \"" + upstream.name + "\"";
}

base::Error with_location(const Locations& locations, const std::string& whose, const base::Error& what) {
  const auto found = locations.find(whose);
  return found == locations.end() ? what : base::Error{found->second + ": " + what.message};
}

namespace {

// Looks up the addresses of all servers in the order of the configuration, except servers that weir finds by
// SRV records.
std::vector<base::Result<net::NameAnswer>> look_up_addresses(const Settings& settings) {
  std::vector<base::Endpoint> addresses;
  for (const auto& upstream : settings.upstreams)
    for (const auto& server : upstream.servers)
      if (!server.is_service) addresses.push_back(server.address);
  return net::look_up_all(addresses, settings.server.nameservers);
}

// Looks up the SRV records of all upstreams that have a service, in the order of the configuration.
std::vector<base::Result<net::ServiceAnswer>> look_up_services(const Settings& settings) {
  std::vector<std::string> services;
  for (const auto& upstream : settings.upstreams)
    if (upstream.service) services.push_back(upstream.service->address.host);
  return net::look_up_services(services, settings.server.nameservers, upstream::choose_records);
}

}  // namespace

LookupResult look_up_servers(const Settings& settings) {
  // Looks up addresses and services at the same time. If the name servers do not answer, this delays the
  // start by net::kLongestLookups. Two look-ups in succession would delay it by twice that time.
  auto later = std::async(std::launch::async, [&] { return look_up_services(settings); });
  auto addresses = look_up_addresses(settings);
  auto services = later.get();
  auto address = addresses.begin();
  auto service = services.begin();
  LookupResult all;
  for (const auto& upstream : settings.upstreams) {
    auto& resolved = all.upstreams.emplace_back(upstream::ResolvedUpstream{upstream, {}});
    const auto failed = [&](const upstream::ServerSettings& server, const base::Error& why) {
      resolved.servers.push_back({server.name(), {}});
      const base::Error what{"upstream \"" + upstream.name + "\": " + why.message};
      const bool may_succeed = server.is_service || net::is_name(server.address);
      (may_succeed ? all.unknown : all.mistakes)
          .push_back(with_location(settings.locations, name_of(upstream, server), what).message);
    };
    if (upstream.service) {
      const auto found = std::move(*service++);
      if (found)
        resolved = {with_targets(upstream, found->targets), upstream::servers_of(found->targets, nullptr)};
      else
        failed(*upstream.service, found.error());
      continue;
    }
    for (const auto& server : upstream.servers) {
      auto found = std::move(*address++);
      if (found)
        resolved.servers.push_back({server.name(), upstream::first_addresses(std::move(found->addresses))});
      else
        failed(server, found.error());
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
