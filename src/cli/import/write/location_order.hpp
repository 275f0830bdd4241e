// Orders the locations of a server. In weir, the first route that matches a request handles it. Pure.
//
// nginx chooses an exact location first. If there is none, nginx finds the longest prefix that matches. If
// that prefix has no ^~, the first regular expression that matches has precedence over the prefix.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct OrderedLocation {
  const Location* location = nullptr;
  std::string path;     // pattern of match.path; empty: all paths
  std::string except;   // pattern of match.not.path; empty: no exception
  bool closed = false;  // true: answers 403, as weir cannot express the path; `path` may match more paths
};

// Returns the locations in an order in which the first location that matches a path is the one that nginx
// chooses. If weir cannot translate a location's regular expression, adds a note and omits the location. But
// if nginx may refuse requests to such a location, keeps it and marks it as closed: weir answers 403.
[[nodiscard]] std::vector<OrderedLocation> order_locations(const std::vector<Location>& locations,
                                                           Notes& notes);

}  // namespace weir::cli::nginx
