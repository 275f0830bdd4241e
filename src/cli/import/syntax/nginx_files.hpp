// Reads an nginx configuration with the files that it includes.
#pragma once

#include "cli/import/syntax/directive.hpp"

#include "weir/base/result.hpp"

#include <cstddef>
#include <string>

namespace weir::cli::nginx {

inline constexpr std::size_t kMostIncludeDepth = 16;       // levels of files that include files
inline constexpr std::size_t kMostFiles = 1'000;           // files in one configuration
inline constexpr std::size_t kLargestNginxFile = 4 << 20;  // bytes

// Returns the directives of the file. The directives of included files replace `include`. A relative name or
// pattern starts at the folder of `file`, as in nginx. A pattern may match no file, but a file whose name has
// no "*", "?" or "[" must exist. The error begins with "FILE:LINE: " or with the name of the file.
[[nodiscard]] base::Result<Directives> read_nginx_files(const std::string& file);

}  // namespace weir::cli::nginx
