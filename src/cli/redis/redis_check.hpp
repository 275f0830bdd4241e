// The output of `weir redis-check`, made from the result of redis::inspect(). Pure.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/redis/inspection.hpp"

#include <string>
#include <vector>

namespace weir::cli {

struct RedisReport {
  std::string text;                   // one fact about Redis on each line
  std::vector<std::string> faults;    // reasons why rules cannot keep their state in this Redis
  std::vector<std::string> warnings;  // settings of Redis that work but are probably not intended
};

// Returns the report for people. REQUIRES that `state` has Redis settings.
[[nodiscard]] RedisReport report_on(const redis::Inspection& found, const config::StateSettings& state);

// Returns the report for programs as one line of JSON: the facts about each node, and all faults and
// warnings. REQUIRES that `state` has Redis settings.
[[nodiscard]] std::string redis_check_json(const redis::Inspection& found,
                                           const config::StateSettings& state);

}  // namespace weir::cli
