// Reads [[route]].
#include "config/read/routes/route_parts.hpp"

#include "weir/http/upgrade.hpp"

#include <algorithm>
#include <set>

namespace weir::config {

namespace {

// Returns the size that the key has; 0 if the key is absent. Reports a size of zero as a mistake.
std::uint64_t positive_size(const TableReader& table, std::string_view key) {
  const auto size = table.size(key);
  if (size && *size == 0) table.mistake(key, "found 0; expected a size above zero, or remove this key");
  return size.value_or(0);
}

std::size_t find_upstream(const TableReader& table,
                          const std::vector<upstream::UpstreamSettings>& upstreams) {
  const auto name = table.text("upstream");
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    if (upstreams[i].name == name) return i;
    if (!upstreams[i].name.empty()) names.push_back(upstreams[i].name);  // no name: a mistake of its own
  }
  if (upstreams.empty())
    table.mistake("upstream", "found " + in_quotes(name) +
                                  ", but there is no [[upstream]]; expected an [[upstream]] of that name");
  else
    table.mistake("upstream", "there is no upstream " + in_quotes(name) + suggestion(name, names));
  return 0;
}

// Returns a label for a route without a name: its host and path. If an earlier route has the same label,
// appends a number.
std::string label_of(const policy::Route& route, const TableReader& match,
                     const std::set<std::string>& taken) {
  std::string label = route.match.hosts.empty() ? "" : route.match.hosts.front().describe();
  label += route.match.path ? match.text("path") : (label.empty() ? "*" : "/*");
  if (!taken.contains(label)) return label;
  for (int i = 2;; ++i)
    if (auto next = label + "#" + std::to_string(i); !taken.contains(next)) return next;
}

constexpr std::string_view kNoRoute = "none";  // the label of requests without a route in weir_requests_total

void name_route(const TableReader& table, const TableReader& match, std::set<std::string>& taken,
                policy::Route& route) {
  route.name = table.has("name") ? table.text("name") : label_of(route, match, taken);
  if (table.has("name") && !is_plain_name(route.name))
    table.mistake("name", "found " + in_quotes(route.name) +
                              "; expected 1 to 128 printable ASCII characters but \" and \\");
  else if (route.name == kNoRoute)
    table.mistake("name", "found " + in_quotes(route.name) +
                              ", which metrics call requests without a route; expected another name");
  else if (!taken.insert(route.name).second)
    table.mistake("name", "found " + in_quotes(route.name) + " a second time; expected a unique name");
}

// Returns the protocol names in lower case. Protocol names ignore case (RFC 9110 §7.8), but other code
// compares them exactly.
std::vector<std::string> read_upgrades(const TableReader& table) {
  auto protocols = table.texts("upgrade");
  for (std::size_t i = 0; i < protocols.size(); ++i)
    if (auto& protocol = protocols[i]; http::may_be_allowed(protocol))
      std::transform(protocol.begin(), protocol.end(), protocol.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    else
      table.mistake_in("upgrade", i,
                       "found " + in_quotes(protocol) +
                           "; expected protocols such as \"websocket\", or [] for none; not HTTP, h2c or "
                           "TLS, because their requests would bypass weir");
  if (!protocols.empty() && table.has("upgrade") && table.has("respond"))
    table.mistake("upgrade", "found beside respond; expected upstream, or remove this key");
  return protocols;
}

policy::Route read_route(const TableReader& table, const std::vector<upstream::UpstreamSettings>& upstreams,
                         const ReadContext& context, std::set<std::string>& taken) {
  policy::Route route;
  const auto match = table.table("match", schema::kMatch);
  route.match = read_match(match, context);
  if (route.match.max_body != 0)
    match.mistake(match.has("body_contains") ? "body_contains"
                  : match.has("json")        ? "json"
                                             : "not",
                  "found a condition on the body, but weir chooses routes before it reads bodies; expected "
                  "it in a [[rule]]");
  if (table.has("upstream") && table.has("respond"))
    table.mistake("respond", "found beside upstream; expected one of them");
  else if (table.has("respond"))
    route.respond = read_respond(table, context);
  else if (!table.has("upstream"))
    table.missing("upstream", "the name of an upstream, or respond = { status = …, body = \"…\" }");
  else
    route.upstream = find_upstream(table, upstreams);
  if (!table.has("respond")) route.upstream_name = table.text("upstream");
  route.honor_retry_after = table.boolean("honor_upstream_retry_after");
  if (route.honor_retry_after && table.has("respond"))
    table.mistake("honor_upstream_retry_after",
                  "found beside respond; expected upstream, or remove this key");
  route.edits = read_edits(table, context);
  route.upgrades = read_upgrades(table);
  route.max_head = positive_size(table, "max_head");
  route.max_body = positive_size(table, "max_body");
  route.priority = static_cast<policy::Priority>(table.whole("priority"));
  route.ambiguous_paths = table.choice<policy::AmbiguousPaths>("ambiguous_paths");
  name_route(table, match, taken, route);
  return route;
}

}  // namespace

std::vector<policy::Route> read_routes(const TableReader& root,
                                       const std::vector<upstream::UpstreamSettings>& upstreams,
                                       const ReadContext& context) {
  std::vector<policy::Route> routes;
  std::set<std::string> taken;
  for (const auto& table : root.tables("route", schema::kRoute)) {
    routes.push_back(read_route(table, upstreams, context, taken));
    context.lines["route " + in_quotes(routes.back().name)] = table.line();
  }
  const bool none = root.has("route") ? routes.empty() : !root.mentions("route");
  if (none && (context.proxies || !context.answers)) root.missing("route", "at least one [[route]]");
  return routes;
}

}  // namespace weir::config
