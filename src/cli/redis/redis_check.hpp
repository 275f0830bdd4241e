// The output of `weir redis-check`, made from the findings of an inspection. Pure.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/redis/inspection.hpp"

#include <string>
#include <vector>

namespace weir::cli {

struct RedisReport {
  std::string text;                   // one fact a line
  std::vector<std::string> faults;    // why rules cannot keep their state there
  std::vector<std::string> warnings;  // what works but is probably not intended
};

// Returns the report. REQUIRES state.redis.
[[nodiscard]] RedisReport report_on(const redis::Inspection& found, const config::StateSettings& state);

// Returns the same for machines as one line of JSON: the facts of each node, all faults and all warnings.
// REQUIRES state.redis.
[[nodiscard]] std::string redis_check_json(const redis::Inspection& found,
                                           const config::StateSettings& state);

}  // namespace weir::cli
