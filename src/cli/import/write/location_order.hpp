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
  std::string path;     // pattern of match.path; empty: all paths
  std::string except;   // pattern of match.not.path; empty: none
  bool closed = false;  // weir has no pattern for the location: `path` has its paths and others, and gets 403
};

// Returns the locations in such an order that the first one that matches a path is the one that nginx
// chooses. Adds a note for an expression that weir has no pattern for. The location is left out, or
// closed if nginx may refuse its requests.
[[nodiscard]] std::vector<OrderedLocation> order_locations(const std::vector<Location>& locations,
                                                           Notes& notes);

}  // namespace weir::cli::nginx
