// The different paths that servers may find in one request path. Some servers decode a path once, others
// twice. Some split the path at encoded slashes, and some remove ";parameters". Some merge slashes before
// they remove dot segments, others afterwards.
//
// Pure. Rules compare the normal form (http/target.hpp). The other interpretations show whether another
// server would find another path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

// Bounds on the search for the interpretations of one path: the octets that the search reads in all, and the
// number of interpretations. A text that the search reads in several ways counts once for each way. If a
// bound is exceeded, `too_many` is set. The bound on octets limits the work that a client can cause before a
// rule rejects its request.
inline constexpr std::size_t kMostReadOctets = 16 << 10;
inline constexpr std::size_t kMostPathInterpretations = 64;

struct PathInterpretations {
  // the interpretations in normal form, each once, without the path's own normal form
  std::vector<std::string> others;
  // True: servers disagree about this path, and the normal form is no more likely than the other
  // interpretations (path_warning() says why). False: most servers read the normal form. Only servers that
  // split paths at encoded slashes, or that decode twice, read another path.
  bool equal = false;
  bool too_many = false;  // true: a bound was exceeded; `others` is empty
};

// Finds the interpretations of `raw`, whose normal form is `normal`. Returns false if all servers read the
// same path. A path without ';', '%', empty segments and dot segments costs one scan.
[[nodiscard]] bool find_path_interpretations(std::string_view raw, std::string_view normal,
                                             PathInterpretations& interpretations);

}  // namespace weir::http
