// Arranges the nginx configuration as weir needs it: listeners, ordered routes, upstreams, and the routes of
// each rule. Pure.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"
#include "cli/import/write/host_order.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weir::cli::nginx {

struct WeirListener {
  Listen listen;
  std::string name;  // for match.listener
  Tls tls;           // combines the settings of all servers of this listener
};

// Keys, with their values in TOML's notation.
using TomlPairs = std::vector<std::pair<std::string, std::string>>;

struct WeirRoute {
  std::string name;
  Position position;
  TomlPairs match;
  Action action;
  const Location* location = nullptr;
  std::size_t server = 0;
};

// An nginx upstream together with the settings of some locations. Locations with other settings need another
// WeirUpstream.
struct WeirUpstream {
  std::string name;
  std::string scheme;
  std::string source;  // name of an nginx upstream, or an address
  Tuning tuning;
};

struct Layout {
  std::vector<WeirListener> listeners;
  std::vector<WeirRoute> routes;  // action.upstream is the name of a WeirUpstream
  std::vector<WeirUpstream> upstreams;
};

// `configuration` must outlive the result.
[[nodiscard]] Layout arrange(const Configuration& configuration, Notes& notes);

}  // namespace weir::cli::nginx
