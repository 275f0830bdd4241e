// Finds the line of the configuration that declares a listener, a server or an alert. Messages about the
// listener, server or alert then name this line.
#pragma once

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/upstream/services.hpp"

#include <string>
#include <vector>

namespace weir::config {

// Return the name under which Settings::locations has the listener, server or alert: `listener 127.0.0.1:80`,
// `server a:1 of upstream "api"`, `alert "login"`.
[[nodiscard]] std::string name_of(const net::ListenerSettings& listener);
[[nodiscard]] std::string name_of(const upstream::UpstreamSettings& upstream,
                                  const upstream::ServerSettings& server);
[[nodiscard]] std::string name_of(const admin::AlertSettings& alert);

// Returns the error `what`, preceded by its location: "weir.toml:3: WHAT". `whose`: a key of `locations`.
// Returns `what` unchanged if `locations` does not have that key.
[[nodiscard]] base::Error with_location(const Locations& locations, const std::string& whose,
                                        const base::Error& what);

template <class T>
[[nodiscard]] base::Result<T> with_location(const Locations& locations, const std::string& whose,
                                            base::Result<T> result) {
  if (!result) return with_location(locations, whose, result.error());
  return result;
}

// The upstreams with their servers, in the order of the configuration. A server whose name could not be
// looked up has no address. It is down until a later look-up succeeds.
struct LookupResult {
  std::vector<upstream::ResolvedUpstream> upstreams;
  std::vector<std::string> unknown;   // a message for each server whose name the resolver does not find
  std::vector<std::string> mistakes;  // a message for each server whose look-up can never succeed
};
// Looks up the names of all servers. Blocks the calling thread.
[[nodiscard]] LookupResult look_up_servers(const Settings& settings);
// Looks up the names of all servers, of all listeners, of all webhooks, of [admin], and of Redis, its
// Sentinels or its nodes. Returns a message for each name that fails. Blocks the calling thread.
[[nodiscard]] std::vector<std::string> find_unknown_names(const Settings& settings);

}  // namespace weir::config
