#include "app/places.hpp"

#include <utility>

namespace weir::app {

std::string name_of(const net::ListenerSettings& listener) {
  return "listener " + listener.address.to_string();
}

std::string name_of(const upstream::UpstreamSettings& upstream, const upstream::ServerSettings& server) {
  return "server " + server.address.to_string() + " of upstream \"" + upstream.name + "\"";
}

base::Error placed(const Places& places, const std::string& whose, const base::Error& what) {
  const auto found = places.find(whose);
  return found == places.end() ? what : base::Error{found->second + ": " + what.message};
}

LookedUp look_up_servers(const Settings& settings) {
  LookedUp all;
  for (const auto& upstream : settings.upstreams) {
    auto& servers = all.servers.emplace_back();
    auto one = upstream;
    for (const auto& server : upstream.servers) {
      one.servers = {server};
      auto found = placed(settings.places, name_of(upstream, server), upstream::resolve_servers(one));
      if (found)
        servers.push_back(std::move(found->front()));
      else
        all.mistakes.push_back(found.error().message);
    }
  }
  return all;
}

}  // namespace weir::app
