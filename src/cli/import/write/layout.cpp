#include "cli/import/write/layout.hpp"

#include "cli/import/read/read_upstream.hpp"
#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/layout_listeners.hpp"
#include "cli/import/write/location_order.hpp"
#include "cli/import/write/toml_text.hpp"

#include "weir/base/endpoint.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr std::size_t kLongestLabel = 110;  // a route's name, with its suffix, has at most 128 characters

const char* sign_of(Modifier modifier) {
  switch (modifier) {
    case Modifier::FirstPrefix:
      return " ^~ ";
    case Modifier::Exact:
      return " = ";
    case Modifier::Regex:
      return " ~ ";
    case Modifier::RegexNoCase:
      return " ~* ";
    case Modifier::Prefix:
      break;
  }
  return " ";
}

class Arranger {
 public:
  Arranger(const Configuration& configuration, Notes& notes) : configuration_(configuration), notes_(notes) {}

  Layout arrange() {
    auto [listeners, fronts] = arrange_listeners(configuration_, notes_);
    layout_.listeners = std::move(listeners);
    for (const auto& listener : layout_.listeners)
      if (listener.listen.ipv6_only) refuse_ipv4(listener);
    for (const auto& front : fronts)
      for (const auto& unit : front.units) add_unit(front, unit);
    return std::move(layout_);
  }

 private:
  // Adds a route that refuses clients with IPv4 addresses, because nginx accepts only IPv6 at this address.
  // With trusted proxies, weir sees the client's address instead of the connection's. Then this function only
  // adds a note.
  void refuse_ipv4(const WeirListener& listener) {
    const auto& listen = listener.listen;
    const std::string what =
        "nginx takes IPv6 alone at " + listen.address + ", and weir's [::] also takes IPv4";
    if (!configuration_.trusted.empty())
      return notes_.add(listen.position, "listen",
                        what + "; weir: an address of the machine instead of [::]");
    notes_.add(listen.position, "listen", what + "; weir answers 403 to its clients");
    const auto server =
        std::find_if(configuration_.servers.begin(), configuration_.servers.end(), [&](const Server& one) {
          return std::any_of(one.listens.begin(), one.listens.end(),
                             [&](const Listen& other) { return other.address == listen.address; });
        });
    add({.name = listener.name + " IPv4",
         .position = listen.position,
         .match = {{"listener", toml_string(listener.name)}, {"ip", toml_string("0.0.0.0/0")}},
         .action = {.scheme = {}, .upstream = {}, .limited = false, .status = 403, .body = {}},
         .location = &server->locations.front()});
  }

  void add_unit(const ListenerGroup& front, const HostUnit& unit) {
    const auto& server = configuration_.servers[unit.server];
    TomlPairs common;
    if (!front.listeners.empty()) common.emplace_back("listener", one_or_list(front.listeners));
    if (!unit.names.empty()) common.emplace_back("host", one_or_list(unit.names));
    for (const auto& entry : order_locations(server.locations, notes_)) {
      WeirRoute route{.name = {},
                      .position = entry.location->position,
                      .match = common,
                      .action = entry.location->action,
                      .location = entry.location,
                      .server = unit.server};
      if (!entry.path.empty()) route.match.emplace_back("path", toml_string(entry.path));
      if (!entry.except.empty())
        route.match.emplace_back("not", inline_table({{"path", toml_string(entry.except)}}));
      if (!entry.location->only_method.empty())
        route.match.emplace_back("methods", text_list({entry.location->only_method}));
      route.name = server.label + sign_of(entry.location->modifier) + entry.location->path;
      if (entry.closed)
        route.action = {.scheme = {}, .upstream = {}, .limited = false, .status = 403, .body = {}};
      set_upstream(route);
      add_with_methods(route);
    }
  }

  // Adds the routes of a location. With `limit_except`, all methods that it does not name get 403.
  void add_with_methods(const WeirRoute& route) {
    const auto& methods = route.location->methods;
    if (methods.empty() || !route.action.limited) return add_with_access(route);
    auto named = route;
    named.match.emplace_back("methods", text_list(methods));
    add_with_access(named);
    add_access(route, false, {});
  }

  // Adds a route for each group of addresses that `allow` or `deny` names, in their order, and a route for
  // all other addresses.
  void add_with_access(const WeirRoute& route) {
    const auto& rules = route.location->scope.access;
    if (!route.action.limited) return add(route);  // nginx runs `return` before `allow` and `deny`
    for (std::size_t at = 0; at < rules.size();) {
      const bool allow = rules[at].allow;
      std::vector<std::string> blocks;
      bool all = false;
      for (; at < rules.size() && rules[at].allow == allow && !all; ++at)
        if (rules[at].block.empty())
          all = true;
        else
          blocks.push_back(rules[at].block);
      if (!blocks.empty() && !all) add_access(route, allow, blocks);
      if (all) return add_access(route, allow, {});
    }
    add(route);
  }

  void add_access(WeirRoute route, bool allow, const std::vector<std::string>& blocks) {
    if (!allow) route.action = {.scheme = {}, .upstream = {}, .limited = true, .status = 403, .body = {}};
    if (!blocks.empty()) route.match.emplace_back("ip", one_or_list(blocks));
    add(std::move(route));
  }

  void add(WeirRoute route) {
    route.name = unique(route.name, names_);
    layout_.routes.push_back(std::move(route));
  }

  // Returns a name that weir accepts and that is not in `taken`. Adds the name to `taken`.
  static std::string unique(const std::string& text, std::set<std::string>& taken) {
    std::string name;
    for (const char c : text.substr(0, kLongestLabel)) {
      if (c == '"' || c == '\\') continue;
      const bool expands = c == '{' && name.ends_with('$');  // weir would read an environment variable
      name += c >= 0x20 && c < 0x7f && !expands ? c : '?';
    }
    auto found = name;
    for (int i = 2; !taken.insert(found).second; ++i) found = name + " #" + std::to_string(i);
    return found;
  }

  // Replaces the name of nginx's upstream by the name of weir's upstream. If weir has no such upstream, the
  // route answers 502.
  void set_upstream(WeirRoute& route) {
    auto& action = route.action;
    if (action.scheme.empty()) return;
    const bool tls = action.scheme == "https" || action.scheme == "grpcs";
    const auto known = configuration_.upstreams.find(action.upstream);
    const bool is_group = known != configuration_.upstreams.end();
    const auto source = is_group ? action.upstream : address_with_port(action.upstream, tls ? "443" : "80");
    const bool usable = is_group ? !known->second.servers.empty() : bool{base::parse_endpoint(source)};
    if (!usable || (tls && source.starts_with("unix:"))) {
      notes_.add(route.position, "location",
                 "there is no server for " + action.upstream + "; weir answers 502");
      action = {.scheme = {}, .upstream = {}, .limited = true, .status = 502, .body = {}};
      return;
    }
    auto tuning = route.location->scope.tuning;
    if (!tls)
      tuning = {.connect = tuning.connect,
                .response = tuning.response,
                .attempts = tuning.attempts,
                .retry_on = tuning.retry_on,
                .verify = false,
                .ca = {},
                .name = {},
                .cert = {},
                .key = {}};
    auto& all = layout_.upstreams;
    const auto same = std::find_if(all.begin(), all.end(), [&](const WeirUpstream& one) {
      return one.source == source && one.scheme == action.scheme && one.tuning == tuning;
    });
    if (same != all.end()) {
      action.upstream = same->name;
      return;
    }
    all.push_back({unique(source, upstream_names_), action.scheme, source, tuning});
    action.upstream = all.back().name;
  }

  const Configuration& configuration_;
  Notes& notes_;
  Layout layout_;
  std::set<std::string> names_, upstream_names_;
};

}  // namespace

Layout arrange(const Configuration& configuration, Notes& notes) {
  return Arranger(configuration, notes).arrange();
}

}  // namespace weir::cli::nginx
