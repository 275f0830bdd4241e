// Parses the text of one nginx configuration file. Pure. Leaves `include` directives as they are.
#pragma once

#include "cli/import/syntax/directive.hpp"

#include "weir/base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli::nginx {

inline constexpr std::size_t kMostDepth = 64;            // levels of blocks within blocks
inline constexpr std::size_t kMostDirectives = 200'000;  // directives in one file

// Returns the directives of the text in order. Skips the content of *_by_lua_block. `file`: the name of the
// file for positions and errors. The error begins with "FILE:LINE: ".
[[nodiscard]] base::Result<Directives> parse_nginx(std::string_view text, const std::string& file);

}  // namespace weir::cli::nginx
