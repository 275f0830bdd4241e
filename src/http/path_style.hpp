// How one kind of server interprets a request path. The defaults give the normal form (http/target.hpp).
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

// Writes the path as a server of this style reads it, in the spelling of path_spelling(). REQUIRES: `raw`
// begins with '/'.
void write_path(std::string_view raw, PathStyle style, std::string& out);

}  // namespace weir::http
