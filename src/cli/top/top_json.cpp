#include "cli/top/top_json.hpp"

#include "weir/observe/json_value.hpp"

#include <cmath>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

// Returns a counter or a cost as a whole number. The admin listener sends these numbers as floating-point
// numbers.
json::value whole(double number) {
  return std::llround(number);
}

json::array clients(const std::vector<TopClient>& list) {
  json::array out;
  for (const auto& one : list)
    out.push_back({{"client", one.client},
                   {"digest", one.digest},
                   {"cost", whole(one.cost)},
                   {"error", whole(one.error)}});
  return out;
}

json::array servers(const Figures& figures) {
  json::array out;
  for (const auto& series : figures.all())
    if (series.name == "weir_upstream_healthy")
      out.push_back({{"upstream", series.labels.at("upstream")},
                     {"server", series.labels.at("server")},
                     {"healthy", series.value != 0},
                     {"drained", figures.sum("weir_upstream_drained", series.labels) != 0}});
  return out;
}

json::object redis(const Sample& before, const Sample& now) {
  return {{"connections", now.figures.count("weir_redis_up")},
          {"up", whole(now.figures.sum("weir_redis_up"))},
          {"calls_per_second", rate(before, now, "weir_redis_calls_total")},
          {"failures_per_second", rate(before, now, "weir_redis_failures_total")}};
}

json::object rule_of(const Sample& before, const Sample& now, const TopRule& rule) {
  const auto said = [&](const char* outcome) {
    return rate(before, now, "weir_decisions_total", {{"rule", rule.rule}, {"outcome", outcome}});
  };
  return {{"rule", rule.rule},
          {"mode", rule.shadow ? "shadow" : "enforce"},
          {"admitted_per_second", said("admitted")},
          {"delayed_per_second", said("delayed")},
          {"refused_per_second", said("refused")},
          {"would_refuse_per_second", said("shadow_refused")},
          {"seconds", whole(rule.seconds)},
          {"admitted", clients(rule.admitted)},
          {"refused", clients(rule.refused)}};
}

}  // namespace

std::string top_json(const Sample& before, const Sample& now, std::string_view address) {
  const auto& figures = now.figures;
  json::object out{{"address", address},
                   {"requests_per_second", rate(before, now, "weir_requests_total")},
                   {"connections", whole(figures.sum("weir_connections_open"))},
                   {"http2_connections", whole(figures.sum("weir_connections", {{"protocol", "HTTP/2"}}))},
                   {"http2_streams", whole(figures.sum("weir_http2_streams"))},
                   {"queued", whole(figures.sum("weir_queue_depth"))},
                   {"keys", whole(figures.sum("weir_keys"))},
                   {"servers", servers(figures)}};
  if (figures.has("weir_redis_up")) out["redis"] = redis(before, now);
  out["clients_counted"] = now.top_is_on;
  json::array rules;
  for (const auto& rule : now.top) rules.push_back(rule_of(before, now, rule));
  out["rules"] = std::move(rules);
  return observe::json_text(out) + "\n";
}

}  // namespace weir::cli
