// The output of `weir redis-check --json`.
#include "cli/redis/redis_check.hpp"

#include "weir/observe/json_value.hpp"

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

double seconds(base::Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

json::array texts(const std::vector<std::string>& list) {
  json::array out;
  for (const auto& text : list) out.emplace_back(text);
  return out;
}

void add_facts(json::object& out, const redis::ServerFacts& facts) {
  if (facts.version.empty()) return;
  out["product"] = facts.product;
  out["version"] = facts.version;
  out["role"] = facts.role;
  if (facts.replicas) out["replicas"] = *facts.replicas;
  if (!facts.eviction.empty()) out["eviction"] = facts.eviction;
  if (facts.max_memory) out["max_memory_bytes"] = *facts.max_memory;
  if (facts.used_memory) out["used_memory_bytes"] = *facts.used_memory;
}

json::object node_of(const redis::Inspection& found) {
  json::object out{{"address", found.address.to_string()}, {"reachable", found.unreachable.empty()}};
  if (!found.unreachable.empty()) return out;
  add_facts(out, found.facts);
  if (found.round_trips) {
    out["round_trip_median_seconds"] = seconds(found.round_trips->median);
    out["round_trip_worst_seconds"] = seconds(found.round_trips->worst);
  }
  if (found.clock) {
    out["clock_ahead_seconds"] = seconds(found.clock->ahead);
    out["clock_error_seconds"] = seconds(found.clock->error);
  }
  out["scripts"] = found.obstacles.empty();
  return out;
}

}  // namespace

std::string redis_check_json(const redis::Inspection& found, const config::StateSettings& state) {
  const auto report = report_on(found, state);
  json::array nodes{node_of(found)};
  for (const auto& other : found.others) nodes.push_back(node_of(other));
  const json::object out{{"ok", report.faults.empty()},
                         {"nodes", std::move(nodes)},
                         {"prefix", state.redis->prefix},
                         {"faults", texts(report.faults)},
                         {"warnings", texts(report.warnings)}};
  return observe::json_text(out) + "\n";
}

}  // namespace weir::cli
