#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/toml_text.hpp"
#include "cli/import/write/write_toml.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

// One rule of weir: a limit, and the routes to which it applies.
struct RuleDraft {
  Limit limit;
  unsigned status = 503;
  bool dry_run = false;
  std::size_t server = 0;  // index of the server, if the zone's key has $server_name; otherwise 0
  std::vector<std::string> routes;
};

std::string fields_table(const Fields& fields) {
  TomlPairs pairs;
  for (const auto& [name, value] : fields) pairs.emplace_back(name, toml_string(value));
  return inline_table(pairs);
}

// Returns the value of headers.request or headers.response; empty if no field changes.
std::string changes_table(const FieldChanges& changes) {
  TomlPairs pairs;
  if (!changes.set.empty()) pairs.emplace_back("set", fields_table(changes.set));
  if (!changes.add.empty()) pairs.emplace_back("add", fields_table(changes.add));
  if (!changes.remove.empty()) pairs.emplace_back("remove", text_list(changes.remove));
  return pairs.empty() ? std::string() : inline_table(pairs);
}

// Returns true for the action of a `return` directive. No rule applies to such an action, and its response
// fields are in respond.headers, not in headers.response.
bool is_return(const Action& action) {
  return action.scheme.empty() && !action.limited;
}

void add_headers(const WeirRoute& route, TomlPairs& lines) {
  const auto& scope = route.location->scope;
  const auto request = route.action.scheme.empty() ? std::string() : changes_table(scope.request);
  const auto response = is_return(route.action) ? std::string() : changes_table(scope.response);
  if (!request.empty()) lines.emplace_back("headers.request", request);
  if (!response.empty()) lines.emplace_back("headers.response", response);
}

// Adds the keys that change the forwarded path.
void add_path(const Action& action, TomlPairs& lines) {
  if (!action.strip.empty()) lines.emplace_back("strip_prefix", toml_string(action.strip));
  if (!action.add.empty()) lines.emplace_back("add_prefix", toml_string(action.add));
  if (!action.pattern.empty())
    lines.emplace_back("rewrite", inline_table({{"pattern", toml_string(action.pattern)},
                                                {"to", toml_string(action.path)}}));
}

TomlPairs respond_of(const WeirRoute& route) {
  TomlPairs pairs;
  if (route.action.status != 200) pairs.emplace_back("status", std::to_string(route.action.status));
  if (!route.action.location.empty()) pairs.emplace_back("location", toml_string(route.action.location));
  if (!route.action.body.empty()) {
    pairs.emplace_back("body", toml_string(route.action.body));
    pairs.emplace_back("content_type", toml_string(route.location->scope.content_type));
  }
  const auto& fields = route.location->scope.response.add;
  if (is_return(route.action) && !fields.empty()) pairs.emplace_back("headers", fields_table(fields));
  if (pairs.empty()) pairs.emplace_back("status", "200");
  return pairs;
}

std::string write_route(const WeirRoute& route, bool own_max_body) {
  TomlPairs lines{{"name", toml_string(route.name)}};
  if (!route.match.empty()) lines.emplace_back("match", inline_table(route.match));
  if (!route.action.scheme.empty())
    lines.emplace_back("upstream", toml_string(route.action.upstream));
  else
    lines.emplace_back("respond", inline_table(respond_of(route)));
  if (!route.action.scheme.empty()) add_path(route.action, lines);
  add_headers(route, lines);
  const auto& most = route.location->scope.max_body;
  if (own_max_body && most) lines.emplace_back("max_body", toml_size(*most));
  return "\n[[route]]  # " + route.position.text() + "\n" + lines_of(lines);
}

const Zone* zone_of(const Configuration& configuration, const Limit& limit) {
  const auto& zones = limit.connections ? configuration.connection_zones : configuration.request_zones;
  const auto found = zones.find(limit.zone);
  return found == zones.end() ? nullptr : &found->second;
}

class RuleWriter {
 public:
  RuleWriter(const Configuration& configuration, Notes& notes)
      : configuration_(configuration), notes_(notes) {}

  void add(const WeirRoute& route) {
    const auto& scope = route.location->scope;
    for (const auto& limit : scope.requests)
      add_limit({limit, scope.request_status, scope.request_dry_run, route.server, {}}, route.name);
    for (const auto& limit : scope.connections)
      add_limit({limit, scope.connection_status, scope.connection_dry_run, route.server, {}}, route.name);
    if (!scope.requests.empty() && !scope.connections.empty())
      notes_.add(scope.connections.front().position, "limit_conn",
                 "weir charges a request that this limit refuses to no other limit; nginx has counted it by "
                 "limit_req");
  }

  std::string write(std::size_t all_routes) {
    std::string text;
    for (const auto& draft : drafts_) text += write_rule(draft, draft.routes.size() == all_routes);
    return text;
  }

 private:
  void add_limit(RuleDraft draft, const std::string& route) {
    const auto* zone = zone_of(configuration_, draft.limit);
    const auto* what = draft.limit.connections ? "limit_conn" : "limit_req";
    if (zone == nullptr)
      return notes_.add(draft.limit.position, what, "there is no zone " + draft.limit.zone);
    if (!zone->usable)
      return notes_.add(draft.limit.position, what,
                        "not imported, because the zone " + draft.limit.zone + " is not");
    if (zone->by_server && zone->key.empty() && !configuration_.servers[draft.server].named)
      return;  // the key is empty in nginx, so nginx does not count the requests
    if (!zone->by_server) draft.server = 0;
    const auto same = std::find_if(drafts_.begin(), drafts_.end(), [&](const RuleDraft& other) {
      return other.limit == draft.limit && other.status == draft.status && other.dry_run == draft.dry_run &&
             other.server == draft.server;
    });
    if (same != drafts_.end()) return same->routes.push_back(route);
    note_sharing(draft, what);
    draft.routes.push_back(route);
    drafts_.push_back(std::move(draft));
  }

  // Adds a note if another rule uses the same zone. nginx counts the requests of both together, but weir
  // counts the requests of each rule apart.
  void note_sharing(const RuleDraft& draft, const char* what) {
    for (const auto& other : drafts_)
      if (other.limit.zone == draft.limit.zone && other.limit.connections == draft.limit.connections &&
          other.server == draft.server)
        return notes_.add(draft.limit.position, what,
                          "nginx counts this together with " + other.limit.position.text() +
                              ", which has other numbers; weir counts each apart");
  }

  std::string unique_name(const std::string& zone) {
    auto name = zone;
    for (int i = 2; std::find(names_.begin(), names_.end(), name) != names_.end(); ++i)
      name = zone + "-" + std::to_string(i);
    names_.push_back(name);
    return name;
  }

  void note_key(const RuleDraft& draft, const Zone& zone) {
    const bool waits = draft.limit.over == Over::Delay && !draft.limit.connections;
    if (waits && !(zone.by_address && zone.key.size() == 1))
      notes_.add(draft.limit.position, "limit_req",
                 "weir's queue is fair: if it is full, a newcomer may take the place of a client that has "
                 "more places");
    if (zone.optional > 1 || (zone.optional == 1 && zone.key.size() > 1 && !zone.by_address))
      notes_.add(zone.position, draft.limit.connections ? "limit_conn_zone" : "limit_req_zone",
                 "nginx counts a request that lacks a part of the key by the other parts; weir " +
                     std::string(zone.by_address ? "counts it by address" : "does not limit it"));
  }

  std::string write_rule(const RuleDraft& draft, bool everywhere) {
    const auto& zone = *zone_of(configuration_, draft.limit);
    const auto& limit = draft.limit;
    TomlPairs lines{{"name", toml_string(unique_name(limit.zone))}};
    TomlPairs match;
    if (!everywhere) match.emplace_back("route", one_or_list(draft.routes));
    if (!zone.except.empty()) match.emplace_back("not", inline_table({{"ip", one_or_list(zone.except)}}));
    if (!match.empty()) lines.emplace_back("match", inline_table(match));
    lines.emplace_back("key", text_list(zone.key));
    if (zone.optional > 0 && zone.by_address && zone.key.size() > 1)
      lines.emplace_back("on_missing", toml_string("ip"));
    const char* algorithm = limit.connections           ? "concurrency"
                            : limit.over == Over::Delay ? "leaky_bucket"
                                                        : "gcra";
    lines.emplace_back("algorithm", toml_string(algorithm));
    const auto number = std::to_string(limit.number);
    lines.emplace_back("limit", limit.connections ? number : toml_string(zone.limit));
    if (!limit.connections) lines.emplace_back(limit.over == Over::Delay ? "queue" : "burst", number);
    if (draft.dry_run) lines.emplace_back("mode", toml_string("shadow"));
    lines.emplace_back("status", std::to_string(draft.status));
    note_key(draft, zone);
    return "\n[[rule]]  # " + limit.position.text() + "\n" + lines_of(lines);
  }

  const Configuration& configuration_;
  Notes& notes_;
  std::vector<RuleDraft> drafts_;
  std::vector<std::string> names_;
};

}  // namespace

std::string write_routes(const Layout& layout) {
  const bool own_max_body = !common_max_body(layout);
  std::string text;
  for (const auto& route : layout.routes) text += write_route(route, own_max_body);
  return text;
}

std::string write_rules(const Configuration& configuration, const Layout& layout, Notes& notes) {
  RuleWriter writer(configuration, notes);
  for (const auto& route : layout.routes)
    if (route.action.limited) writer.add(route);
  return writer.write(layout.routes.size());
}

}  // namespace weir::cli::nginx
