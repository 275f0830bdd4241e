// Formats the report of a replay as text for people, or as JSON.
#pragma once

#include "weir/replay/replay.hpp"

#include <string>

namespace weir::cli {

[[nodiscard]] std::string to_text(const replay::Report& report);
[[nodiscard]] std::string to_json(const replay::Report& report);

}  // namespace weir::cli
