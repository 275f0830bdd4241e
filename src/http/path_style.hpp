// How a server interprets a request path. The defaults give the normal form (http/target.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

struct PathStyle {
  enum class Parameters : std::uint8_t {
    All,    // after ';' and "%3B"
    Plain,  // after ';'
    None,
  };
  Parameters dropped = Parameters::All;
  bool merge_first = true;  // merge slashes before removing dot segments; false: after
};

// Writes the path to `out` in that style, with one spelling. REQUIRES: `raw` begins with '/'.
void write_path(std::string_view raw, PathStyle style, std::string& out);

}  // namespace weir::http
