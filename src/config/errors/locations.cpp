#include "weir/config/locations.hpp"

#include <utility>

namespace weir::config {

std::string name_of(const net::ListenerSettings& listener) {
  return "listener " + listener.address.to_string();
}

std::string name_of(const upstream::UpstreamSettings& upstream, const upstream::ServerSettings& server) {
  return "server " + server.address.to_string() + " of upstream \"" + upstream.name + "\"";
}

base::Error with_location(const Locations& locations, const std::string& whose, const base::Error& what) {
  const auto found = locations.find(whose);
  return found == locations.end() ? what : base::Error{found->second + ": " + what.message};
}

LookupResult look_up_servers(const Settings& settings) {
  LookupResult all;
  for (const auto& upstream : settings.upstreams) {
    auto& servers = all.servers.emplace_back();
    auto one = upstream;
    for (const auto& server : upstream.servers) {
      one.servers = {server};
      auto found =
          with_location(settings.locations, name_of(upstream, server), upstream::resolve_servers(one));
      if (found) {
        servers.push_back(std::move(found->front()));
        continue;
      }
      servers.push_back({server.address.to_string(), {}});
      (net::is_name(server.address) ? all.unknown : all.mistakes).push_back(found.error().message);
    }
  }
  return all;
}

std::vector<std::string> find_unknown_names(const Settings& settings) {
  auto found = look_up_servers(settings);
  auto lines = std::move(found.unknown);
  lines.insert(lines.end(), found.mistakes.begin(), found.mistakes.end());
  for (const auto& listener : settings.listeners)
    if (const auto known = net::resolve(listener.address); !known)
      lines.push_back(with_location(settings.locations, name_of(listener), known.error()).message);
  if (!settings.admin.address) return lines;
  if (const auto known = net::resolve(*settings.admin.address); !known)
    lines.push_back(with_location(settings.locations, "[admin]", known.error()).message);
  return lines;
}

}  // namespace weir::config
