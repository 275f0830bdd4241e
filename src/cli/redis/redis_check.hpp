// What `weir redis-check` prints, from what an inspection found. Pure.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/redis/inspection.hpp"

#include <string>
#include <vector>

namespace weir::app {

struct RedisReport {
  std::string text;                   // a fact a line
  std::vector<std::string> faults;    // why rules cannot keep their state there
  std::vector<std::string> warnings;  // what works, and is probably not meant
};

// REQUIRES state.redis.
[[nodiscard]] RedisReport report_on(const redis::Inspection& found, const StateSettings& state);

// Returns the same for machines: what each node says of itself, and all faults and warnings. One line.
// REQUIRES state.redis.
[[nodiscard]] std::string redis_check_json(const redis::Inspection& found, const StateSettings& state);

}  // namespace weir::app
