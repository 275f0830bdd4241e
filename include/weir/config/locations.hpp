// Where in the configuration a listener or a server stands, and the messages about one that cannot be used.
#pragma once

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/upstream/server_group.hpp"

#include <string>
#include <vector>

namespace weir::config {

// Return the name under which Settings::locations has it: `listener 127.0.0.1:80`, `server a:1 of upstream
// "api"`.
[[nodiscard]] std::string name_of(const net::ListenerSettings& listener);
[[nodiscard]] std::string name_of(const upstream::UpstreamSettings& upstream,
                                  const upstream::ServerSettings& server);

// Returns the error with its place in front: "weir.toml:3: WHAT". Without a known place, returns `what`
// unchanged.
[[nodiscard]] base::Error with_location(const Locations& locations, const std::string& whose,
                                        const base::Error& what);

template <class T>
[[nodiscard]] base::Result<T> with_location(const Locations& locations, const std::string& whose,
                                            base::Result<T> result) {
  if (!result) return with_location(locations, whose, result.error());
  return result;
}

// The servers of each upstream, in the order of the configuration. A server whose name could not be looked up
// has no address. It is down until a later look-up succeeds.
struct LookupResult {
  std::vector<std::vector<upstream::Server>> servers;
  std::vector<std::string> unknown;   // a message for each server whose name is unknown
  std::vector<std::string> mistakes;  // a message for each fault that no later look-up can fix
};
// Looks up the names of all servers. Blocks.
[[nodiscard]] LookupResult look_up_servers(const Settings& settings);
// Returns a message for each name of a server, a listener or [admin] that cannot be looked up. Blocks.
[[nodiscard]] std::vector<std::string> find_unknown_names(const Settings& settings);

}  // namespace weir::config
