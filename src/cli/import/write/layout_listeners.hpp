// Arranges weir's listeners, and orders the servers of each listener. Pure.
#pragma once

#include "cli/import/write/layout.hpp"

#include <cstddef>
#include <vector>

namespace weir::cli::nginx {

// Listeners that have the same servers in the same order.
struct ListenerGroup {
  std::vector<std::string> listeners;  // names; empty: all listeners
  std::vector<HostUnit> units;
};

struct ListenerGroups {
  std::vector<WeirListener> listeners;
  std::vector<ListenerGroup> fronts;
};

[[nodiscard]] ListenerGroups arrange_listeners(const Configuration& configuration, Notes& notes);

}  // namespace weir::cli::nginx
