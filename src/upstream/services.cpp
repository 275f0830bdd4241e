#include "weir/upstream/services.hpp"

#include "weir/upstream/resolution.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace weir::upstream {

std::vector<net::ServiceRecord> choose_records(std::vector<net::ServiceRecord> records) {
  const auto place = [](const net::ServiceRecord& record) {
    return std::tuple<const std::string&, std::uint16_t>(record.target.host, record.target.port);
  };
  std::sort(records.begin(), records.end(), [&](const auto& left, const auto& right) {
    return std::tuple(left.priority, -int{left.weight}, place(left)) <
           std::tuple(right.priority, -int{right.weight}, place(right));
  });
  std::vector<net::ServiceRecord> chosen;
  for (auto& record : records) {
    const auto same = [&](const net::ServiceRecord& one) { return one.target == record.target; };
    if (chosen.size() < kMaxServers && std::none_of(chosen.begin(), chosen.end(), same))
      chosen.push_back(std::move(record));
  }
  std::sort(chosen.begin(), chosen.end(), [&](const auto& left, const auto& right) {
    return std::tuple(left.priority, place(left)) < std::tuple(right.priority, place(right));
  });
  return chosen;
}

UpstreamSettings with_targets(UpstreamSettings settings, const std::vector<net::ServiceTarget>& targets) {
  std::map<std::uint16_t, std::uint32_t> largest;  // the largest weight of each priority
  for (const auto& target : targets) {
    auto& most = largest[target.record.priority];
    most = std::max<std::uint32_t>(most, target.record.weight);
  }
  settings.servers.clear();
  for (const auto& target : targets) {
    auto server = *settings.service;
    server.address = target.record.target;
    server.is_service = false;
    server.priority = target.record.priority;
    // By RFC 2782, a server of weight 0 gets a very small share of the requests beside servers of other
    // weights.
    const auto most = largest[target.record.priority];
    server.weight =
        most == 0 ? 1 : std::max(1U, (target.record.weight * kFullServiceWeight + most / 2) / most);
    settings.servers.push_back(std::move(server));
  }
  return settings;
}

namespace {

// Returns true if the servers of the service are unknown, because no look-up of the service has succeeded.
bool is_unknown_service(const UpstreamSettings& settings) {
  return settings.servers.size() == 1 && settings.servers.front().is_service;
}

// Takes over the servers and their addresses from the older group.
void keep_servers(ResolvedUpstream& upstream, const ServerGroup& older) {
  auto& settings = upstream.settings;
  settings.servers.clear();
  for (const auto& before : older.settings().servers) {
    auto server = *settings.service;
    server.address = before.address;
    server.is_service = before.is_service;
    server.priority = before.priority;
    server.weight = before.weight;
    settings.servers.push_back(std::move(server));
  }
  upstream.servers = older.servers();
}

}  // namespace

void keep_known(ResolvedUpstream& upstream, const ServerGroup& older) {
  const auto& service = older.settings().service;
  if (is_unknown_service(upstream.settings) && service &&
      service->address == upstream.settings.service->address)
    return keep_servers(upstream, older);
  for (const auto& old : older.servers())
    for (auto& server : upstream.servers)
      if (server.name == old.name &&
          (server.addresses.empty() || std::is_permutation(server.addresses.begin(), server.addresses.end(),
                                                           old.addresses.begin(), old.addresses.end())))
        server = old;
}

std::vector<Server> servers_of(const std::vector<net::ServiceTarget>& targets, const ServerGroup* older) {
  std::vector<Server> servers;
  for (const auto& target : targets) {
    Server server{target.record.target.to_string(), first_addresses(target.addresses)};
    for (std::size_t at = 0; older != nullptr && at < older->size(); ++at)
      if (auto known = older->member(at).server(); known.name == server.name && !known.addresses.empty())
        server = std::move(known);
    servers.push_back(std::move(server));
  }
  return servers;
}

}  // namespace weir::upstream
