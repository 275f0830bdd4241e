// Orders the locations of a server for weir, whose first route that matches wins. Pure.
//
// nginx takes an exact location first. Else it finds the longest prefix. If that has no ^~, the first regular
// expression that matches has precedence over it.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct OrderedLocation {
  const Location* location = nullptr;
  std::string path;    // pattern of match.path; empty: all paths
  std::string except;  // pattern of match.not.path; empty: none
};

// Returns the locations in such an order that the first one that matches a path is the one that nginx
// chooses. Leaves out a location that weir has no pattern for, and adds a note.
[[nodiscard]] std::vector<OrderedLocation> order_locations(const std::vector<Location>& locations,
                                                           Notes& notes);

}  // namespace weir::cli::nginx
