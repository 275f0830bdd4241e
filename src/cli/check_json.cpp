#include "cli/check_json.hpp"

#include "weir/admin/sources.hpp"
#include "weir/observe/json_value.hpp"

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

json::array upstreams(const config::Settings& settings) {
  json::array out;
  for (const auto& upstream : settings.upstreams) {
    json::array servers;
    for (const auto& server : upstream.servers) servers.emplace_back(server.name());
    out.push_back({{"name", upstream.name}, {"servers", std::move(servers)}});
  }
  return out;
}

json::array rules(const config::Settings& settings) {
  json::array out;
  for (const auto& rule : settings.rules) {
    const auto text = admin::describe(rule);
    out.push_back({{"name", text.name},
                   {"algorithm", text.algorithm},
                   {"limit", text.limit},
                   {"match", text.match},
                   {"key", text.key},
                   {"store", text.store},
                   {"mode", text.mode}});
  }
  return out;
}

}  // namespace

std::string check_json(const config::Settings& settings, std::span<const config::Warning> warnings,
                       std::span<const std::string> unknown, bool ok) {
  json::array warned, listeners, routes, mistakes;
  for (const auto& line : unknown) mistakes.emplace_back(line);
  for (const auto& [where, what] : warnings) warned.push_back({{"where", where}, {"what", what}});
  for (const auto& listener : settings.listeners) listeners.emplace_back(listener.address.to_string());
  for (const auto& route : settings.routes) routes.emplace_back(route.name);
  const json::object out{
      {"ok", ok},
      {"mistakes", std::move(mistakes)},
      {"warnings", std::move(warned)},
      {"listeners", std::move(listeners)},
      {"upstreams", upstreams(settings)},
      {"routes", std::move(routes)},
      {"rules", rules(settings)},
      {"keys", settings.client.keys ? json::value(settings.client.keys->size()) : nullptr}};
  return observe::json_text(out) + "\n";
}

std::string check_json(const config::ConfigError& error) {
  json::array mistakes;
  for (const auto& mistake : error.mistakes()) mistakes.emplace_back(mistake);
  const json::object out{{"ok", false}, {"mistakes", std::move(mistakes)}, {"warnings", json::array()}};
  return observe::json_text(out) + "\n";
}

}  // namespace weir::cli
