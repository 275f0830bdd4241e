// Orders the servers of a listener. In weir, the first route that matches a request handles it. Pure.
#pragma once

#include "cli/import/read/model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli::nginx {

// Some or all names of one server.
struct HostUnit {
  std::size_t server = 0;          // index into Configuration::servers
  std::vector<std::string> names;  // patterns of match.host; empty: all hosts
  friend bool operator==(const HostUnit&, const HostUnit&) = default;
};

// Returns the units in an order in which the first unit that matches a host belongs to the server that nginx
// chooses. The last unit is the default server, for all hosts. `members`: the indexes of the listener's
// servers.
[[nodiscard]] std::vector<HostUnit> order_hosts(const std::vector<Server>& servers,
                                                const std::vector<std::size_t>& members,
                                                std::size_t default_server);

}  // namespace weir::cli::nginx
