# Writes OUTPUT, a C++ source with the version of weir. If SOURCE is a git work tree, the version has the commit and
# its date. Runs at each build, and changes the file only if the version has changed.
set(commit "${COMMIT}")
if(NOT commit)
  execute_process(COMMAND git -C ${SOURCE} log -1 --abbrev=12 --date=short --format=%h,\ %cd
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "weir ${VERSION}")
if(commit)
  string(APPEND text " (commit ${commit})")
  string(REGEX REPLACE "[, ].*" "" commit "${commit}")
else()
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "weir/base/version.hpp"

namespace weir::base {

std::string_view version_text() noexcept { return "@text@"; }

std::string_view commit() noexcept { return "@commit@"; }

}  // namespace weir::base
]])
