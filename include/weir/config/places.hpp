// What cannot be done, with where in the configuration it was asked for.
#pragma once

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/upstream/fleet.hpp"

#include <string>
#include <vector>

namespace weir::app {

// `listener 127.0.0.1:80`, `server a:1 of upstream "api"`: how Settings::places calls them.
[[nodiscard]] std::string name_of(const net::ListenerSettings& listener);
[[nodiscard]] std::string name_of(const upstream::UpstreamSettings& upstream,
                                  const upstream::ServerSettings& server);

// "weir.toml:3: WHAT"; WHAT alone where nothing is known of that name.
[[nodiscard]] base::Error placed(const Places& places, const std::string& whose, const base::Error& what);

template <class T>
[[nodiscard]] base::Result<T> placed(const Places& places, const std::string& whose, base::Result<T> result) {
  if (!result) return placed(places, whose, result.error());
  return result;
}

// The servers of all upstreams in their order. A server whose name could not be looked up has no address, and
// is down until it can be.
struct LookedUp {
  std::vector<std::vector<upstream::Server>> servers;
  std::vector<std::string> unknown;   // which of them have none, and why: a line each
  std::vector<std::string> mistakes;  // what no later look-up can mend
};
// Blocks.
[[nodiscard]] LookedUp look_up_servers(const Settings& settings);
// What of the names of servers and listeners cannot be looked up: a line each. Blocks.
[[nodiscard]] std::vector<std::string> find_unknown_names(const Settings& settings);

}  // namespace weir::app
