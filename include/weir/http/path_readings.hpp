// The paths that servers may take one path for. Servers decode a path once or twice, divide it at encoded
// slashes or not, know ";parameters" or not, and merge slashes before or after they remove dot segments.
//
// Pure. Rules compare the normal form (http/target.hpp); the other readings show whether another server would
// find another path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

// The most octets that are written to find the readings of one path, and the most readings of it; `too_many`
// beyond either. The first bounds what a client can make weir compute before a rule refuses it.
inline constexpr std::size_t kMostReadOctets = 16 << 10;
inline constexpr std::size_t kMostReadings = 64;

struct PathReadings {
  std::vector<std::string> others;  // in normal form, each once, without the normal form of the path itself
  // The normal form is no better guess than the others: path_doubt() says why. False: it is what most servers
  // read, and the others are those of servers that decode slashes, or decode twice.
  bool equal = false;
  bool too_many = false;  // `others` is empty then, and any path may be meant
};

// Finds the readings of `raw`, whose normal form is `normal`. Returns false where all servers read the same;
// a path without ';', '%', empty segments and dot segments costs one look.
[[nodiscard]] bool find_path_readings(std::string_view raw, std::string_view normal, PathReadings& readings);

}  // namespace weir::http
