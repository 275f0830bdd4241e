// How one kind of server interprets a request path. A default PathStyle gives the normal form
// (http/target.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

struct PathStyle {
  enum class Parameters : std::uint8_t {
    All,    // drop parameters after ';' and "%3B"
    Plain,  // drop parameters after ';'
    None,
  };
  Parameters dropped = Parameters::All;
  bool merge_first = true;  // true: slashes are merged before dot segments are removed; false: afterwards
};

// Sets `out` to the path as a server of this style reads it. Each octet is written as in the normal form: as
// itself if a path may contain it, otherwise as %XX. REQUIRES: `raw` begins with '/'.
void write_path(std::string_view raw, PathStyle style, std::string& out);

}  // namespace weir::http
