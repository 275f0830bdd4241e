// How a server makes a path of what came. Defaults: the normal form (http/target.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

struct PathStyle {
  enum class Parameters : std::uint8_t {
    All,    // behind ';' and "%3B"
    Plain,  // behind ';'
    None,
  };
  Parameters dropped = Parameters::All;
  bool merge_first = true;  // slashes are merged before dot segments are removed; false: afterwards
};

// Writes the path in that style to `out`, in one spelling. REQUIRES that `raw` begins with '/'.
void write_path(std::string_view raw, PathStyle style, std::string& out);

}  // namespace weir::http
