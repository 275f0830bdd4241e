#include "cli/report.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include "weir/base/units.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

std::string_view text(const json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  return {value->as_string().data(), value->as_string().size()};
}

std::string number(const json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value == nullptr ? "" : observe::json_text(*value);
}

// Returns the time in the member `name`, in words. The value null means never.
std::string time(const json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  if (value == nullptr || value->is_null()) return "never";
  constexpr double kMicros = 1e6;
  return base::to_readable(base::Duration(std::llround(value->to_number<double>() * kMicros)));
}

std::string joined(const json::array& texts) {
  std::string line;
  for (const auto& one : texts) line += (line.empty() ? "" : ", ") + std::string(one.as_string());
  return line.empty() ? "everybody" : line;
}

enum class Mode { Enforce, Shadow };

std::string says(const json::object& limit, Mode mode) {
  const auto word = text(limit, "says");
  const bool would = mode == Mode::Shadow;
  if (word == "refuse") {
    const auto free = time(limit, "retry_after_seconds");
    return std::string(would ? "would refuse" : "refuses") +
           (free == "never" ? " always: the cost exceeds the limit" : "; free in " + free);
  }
  if (word == "delay") return (would ? "would delay by " : "delays by ") + time(limit, "delay_seconds");
  if (word == "pace") {
    const auto* busy = limit.if_contains("busy_seconds");
    const bool idle = busy == nullptr || busy->to_number<double>() == 0;
    return idle ? "paces bodies" : "paces bodies, busy for " + time(limit, "busy_seconds");
  }
  return word == "admit" ? "admits" : "unknown";
}

std::string limit_line(const json::object& limit, Mode mode) {
  std::string line(text(limit, "limiter"));
  if (const auto choice = text(limit, "chosen_by"); !choice.empty()) line += " (" + std::string(choice) + ")";
  if (limit.contains("decides")) line += ", counted but not enforced";
  line += ": " + says(limit, mode);
  if (limit.contains("remaining")) {
    line += ", " + number(limit, "remaining") + " of " + number(limit, "limit") + " left";
    const auto* reset = limit.if_contains("reset_after_seconds");
    if (!reset->is_null() && reset->to_number<double>() > 0)
      line += ", full in " + time(limit, "reset_after_seconds");
  }
  if (limit.contains("penalty_seconds")) line += ", penalty for " + time(limit, "penalty_seconds");
  if (limit.contains("violations")) {
    const auto violations = number(limit, "violations");
    line += ", " + violations + (violations == "1" ? " violation" : " violations");
  }
  if (limit.contains("waiting")) line += ", " + number(limit, "waiting") + " waiting";
  line += ", " + std::string(text(limit, "store"));
  if (const auto note = text(limit, "note"); !note.empty()) line += " (" + std::string(note) + ")";
  return line;
}

// Three columns of a table. table() makes the first two columns as wide as their longest text.
using Row = std::array<std::string, 3>;
std::string table(const std::vector<Row>& rows) {
  std::size_t first = 0, second = 0;
  for (const auto& row : rows) {
    first = std::max(first, row[0].size());
    second = std::max(second, row[1].size());
  }
  std::string lines;
  for (const auto& row : rows)
    lines += "  " + row[0] + std::string(first - row[0].size() + 2, ' ') + row[1] +
             std::string(second - row[1].size() + 2, ' ') + row[2] + "\n";
  return lines;
}

void add_rule(std::vector<Row>& rows, const json::object& rule) {
  auto name = std::string(text(rule, "name"));
  const auto mode = text(rule, "mode") == "shadow" ? Mode::Shadow : Mode::Enforce;
  if (mode == Mode::Shadow) name += " (shadow)";
  if (!rule.at("applies").as_bool()) return rows.push_back({name, "-", std::string(text(rule, "why"))});
  auto key = joined(rule.at("key").as_array());
  const auto& limits = rule.at("limits").as_array();
  if (limits.empty()) rows.push_back({name, key, "applies, but was not asked"});
  for (const auto& limit : limits) {
    rows.push_back({name, key, limit_line(limit.as_object(), mode)});
    name.clear();
    key.clear();
  }
}

std::string client_line(const json::object& client) {
  std::string line = "client   " + std::string(text(client, "address"));
  for (const auto& [name, value] : client) {
    if (name == "address" || !value.is_string()) continue;
    line += ", " + std::string(name == "peer" ? "through" : std::string_view(name.data(), name.size())) +
            " " + std::string(value.as_string());
  }
  return line + "\n";
}

std::string route_lines(const json::object& route) {
  const std::string host(text(route, "assumed_host"));
  const auto end = host.empty() ? "\n" : "\n           for " + host + ", because no host is given\n";
  if (const auto name = text(route, "name"); !name.empty())
    return "route    " + std::string(name) + ", " + std::string(text(route, "target")) + ", priority " +
           number(route, "priority") + end;
  std::string lines = "route    none" + end;
  for (const auto& other : route.at("passed_over").as_array())
    lines += "           " + std::string(text(other.as_object(), "name")) + ": " +
             std::string(text(other.as_object(), "why")) + "\n";
  return lines;
}

std::string verdict_lines(const json::object& verdict) {
  std::string lines = "verdict  " + std::string(text(verdict, "verdict"));
  if (text(verdict, "verdict") == "answer") lines += " " + number(verdict, "status");
  lines += ": " + std::string(text(verdict, "why"));
  lines += "\nanswer   " + (verdict.contains("status") ? number(verdict, "status") : "the upstream's") + "\n";
  for (const auto& [name, value] : verdict.at("headers").as_object())
    lines += "           " + std::string(name) + ": " + std::string(value.as_string()) + "\n";
  if (const auto body = text(verdict, "body"); !body.empty()) lines += "           " + std::string(body);
  return lines.ends_with('\n') ? lines : lines + "\n";
}

}  // namespace

std::string explanation_report(const json::object& reply_json) {
  std::vector<Row> rows;
  for (const auto& rule : reply_json.at("rules").as_array()) add_rule(rows, rule.as_object());
  return client_line(reply_json.at("client").as_object()) + route_lines(reply_json.at("route").as_object()) +
         (rows.empty() ? "rules    none\n" : "rules\n" + table(rows)) +
         verdict_lines(reply_json.at("verdict").as_object());
}

std::string keys_report(const json::object& reply_json) {
  std::string lines =
      "rule " + std::string(text(reply_json, "rule")) + ", key " + joined(reply_json.at("key").as_array());
  lines += reply_json.contains("reset") ? ": reset; its state before was\n" : "\n";
  for (const auto& limit : reply_json.at("limits").as_array())
    lines += "  " + limit_line(limit.as_object(), Mode::Enforce) + "\n";
  return lines;
}

std::string client_keys_report(const json::object& reply_json) {
  const auto line = [](const json::object& key) {
    std::string words;
    for (const char* name : {"user", "org", "tier", "service"})
      if (key.contains(name))
        words += (words.empty() ? ": " : ", ") + std::string(name) + " " + std::string(text(key, name));
    return nginx::printable(std::string(text(key, "id")) + words);
  };
  std::string lines;
  if (const auto* list = reply_json.if_contains("keys")) {
    for (const auto& key : list->as_array()) lines += line(key.as_object()) + "\n";
    return lines.empty() ? "the keys file has no keys\n" : lines;
  }
  const auto* created = reply_json.if_contains("created");
  lines = std::string(created == nullptr   ? "removed "
                      : created->as_bool() ? "added "
                                           : "changed ") +
          line(reply_json.at("key").as_object()) + "\n";
  if (const auto* warnings = reply_json.if_contains("warnings"))
    for (const auto& warning : warnings->as_array())
      lines += "warning: " + nginx::printable(std::string(warning.as_string())) + "\n";
  return lines;
}

std::string servers_report(const json::object& reply_json) {
  std::vector<std::array<std::string, 6>> rows{
      {"UPSTREAM", "SERVER", "STATE", "WEIGHT", "IN FLIGHT", "FAILURES"}};
  for (const auto& each : reply_json.at("servers").as_array()) {
    const auto& server = each.as_object();
    std::string state = server.at("drained").as_bool() ? "drained" : "";
    if (!server.at("healthy").as_bool()) state += state.empty() ? "down" : ", down";
    auto weight = number(server, "weight");
    if (const auto configured = number(server, "configured_weight"); weight != configured)
      weight += " (configured: " + configured + ")";
    rows.push_back({std::string(text(server, "upstream")), std::string(text(server, "server")),
                    state.empty() ? "up" : state, std::move(weight), number(server, "in_flight"),
                    number(server, "failures")});
  }
  std::array<std::size_t, 6> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string lines;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      lines += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    lines += row.back() + "\n";
  }
  return lines;
}

}  // namespace weir::cli
