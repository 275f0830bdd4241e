// GET /api/servers: lists the servers of all upstreams. POST /api/servers: drains a server, ends the drain,
// or sets the weight.
#include "admin/pages/pages.hpp"
#include "admin/pages/server_json.hpp"

#include "weir/observe/json_value.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

constexpr std::string_view kForm =
    R"(write {"upstream": "api", "server": "10.0.0.1:9000", "drained": true}, "drained": false or "weight": 3)";

Answer bad_request(const std::string& what) {
  return error_answer(400, "bad_request", what + "; " + std::string(kForm));
}

// Reads a member of the body into `change`. Returns what is wrong; empty if nothing is wrong.
std::string take_member(std::string_view name, const json::value& value, ServerChange& change) {
  const bool names = name == "upstream" || name == "server";
  if (names && !value.is_string()) return "\"" + std::string(name) + "\" is not a string";
  if (name == "upstream") change.upstream = value.as_string().c_str();
  if (name == "server") change.server = value.as_string().c_str();
  if (names) return {};
  if (name == "drained") {
    if (!value.is_bool()) return "\"drained\" is neither true nor false";
    change.drained = value.as_bool();
    return {};
  }
  if (name != "weight") return "there is no member \"" + std::string(name) + "\"";
  const auto weight = value.is_int64() ? value.as_int64() : 0;
  if (weight < 1 || weight > upstream::kFullServiceWeight)
    return "\"weight\" is not a whole number from 1 to " + std::to_string(upstream::kFullServiceWeight) +
           (value.is_int64() && weight == 0 ? " (a drained server gets no requests)" : "");
  change.weight = static_cast<std::uint32_t>(weight);
  return {};
}

std::string read_change(std::string_view body, ServerChange& change) {
  json::error_code ec;
  const auto body_json = json::parse(json::string_view(body.data(), body.size()), ec);
  if (ec || !body_json.is_object()) return "the body is not a JSON object";
  for (const auto& [name, value] : body_json.as_object())
    if (auto fault = take_member({name.data(), name.size()}, value, change); !fault.empty()) return fault;
  if (change.upstream.empty() || change.server.empty()) return "the body names no upstream and server";
  return change.drained || change.weight ? "" : "the body changes nothing";
}

Answer list_of(const std::vector<ServerFigures>& all) {
  json::array servers;
  for (const auto& each : all) {
    json::object server{{"upstream", each.upstream}};
    for (auto& [name, value] : server_json(each)) server[name] = value;
    servers.push_back(std::move(server));
  }
  return {.status = 200, .body = observe::json_text(json::object{{"servers", std::move(servers)}})};
}

}  // namespace

json::object server_json(const ServerFigures& server) {
  return {{"server", server.server},
          {"healthy", server.healthy},
          {"drained", server.drained},
          {"weight", server.weight},
          {"configured_weight", server.configured_weight},
          {"in_flight", server.in_flight},
          {"failures", server.failures},
          {"ejections", server.ejections}};
}

Answer list_servers(const Sources& sources, const PageRequest&) {
  return list_of(sources.servers ? sources.servers() : std::vector<ServerFigures>{});
}

Answer change_server(const Sources& sources, const PageRequest& question) {
  ServerChange change;
  change.peer = question.peer;
  if (const auto fault = read_change(question.body, change); !fault.empty()) return bad_request(fault);
  const auto changed = sources.change_server(change);
  if (!changed) return error_answer(404, "not_found", changed.error().message);
  return list_of({*changed});
}

}  // namespace weir::admin
