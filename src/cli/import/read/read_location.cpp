#include "cli/import/read/read_location.hpp"

#include "cli/import/read/placeholders.hpp"
#include "cli/import/syntax/nginx_values.hpp"

#include "weir/policy/routing/path_rewrite.hpp"
#include "weir/policy/routing/text_template.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr unsigned kNotFound = 404;
constexpr unsigned kBadGateway = 502;

// Sets the modifier and the path. Returns false for a named location, which no request reaches by its path.
bool read_path(const Directive& directive, Location& location) {
  auto words = directive.arguments;
  if (words.empty()) return false;
  if (words.size() == 1) {  // nginx accepts a modifier without a blank after it
    for (const std::string_view sign : {"~*", "~", "^~", "="})
      if (const auto rest = after(words[0], sign)) {
        words = {std::string(sign), *rest};
        break;
      }
  }
  location.path = words.back();
  const auto modifier = words.size() == 2 ? words[0] : std::string();
  if (modifier == "=") location.modifier = Modifier::Exact;
  if (modifier == "^~") location.modifier = Modifier::FirstPrefix;
  if (modifier == "~") location.modifier = Modifier::Regex;
  if (modifier == "~*") location.modifier = Modifier::RegexNoCase;
  return !location.path.starts_with('@');
}

bool is_regex(const Location& location) {
  return location.modifier == Modifier::Regex || location.modifier == Modifier::RegexNoCase;
}

bool is_prefix(const std::string& text) {
  return text.empty() || policy::fault_of_prefix(text).empty();
}

std::string without_slash(const std::string& path) {
  return path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

// Sets how weir replaces the location's path by the URI of proxy_pass. Returns false if weir cannot do so.
bool change_path(const std::string& uri, const Location& location, Action& action) {
  const auto& from = location.path;
  const bool exact = location.modifier == Modifier::Exact;
  const auto bare = without_slash(from);
  if (is_regex(location) || !is_prefix(bare)) return false;
  if (!exact && from.ends_with('/') && uri.ends_with('/')) {
    if (!is_prefix(without_slash(uri))) return false;
    action.strip = bare;
    action.add = without_slash(uri);
    return true;
  }
  const auto pattern = "^" + literal_pattern(from) + (exact ? "$" : "(.*)$");
  const auto path = with_placeholders(uri).text + (exact ? "" : "{1}");
  if (!policy::PathPattern::parse(pattern, path)) return false;
  action.pattern = pattern;
  action.path = path;
  return true;
}

// Reads the URI of proxy_pass, which replaces the path of the location.
void read_uri(const Directive& directive, const std::string& uri, Location& location, Notes& notes) {
  if (uri.empty() || (!is_regex(location) && uri == location.path)) return;
  const auto what = "path " + uri + " in place of " + location.path;
  if (!change_path(uri, location, location.action))
    notes.add(directive, what +
                             ": not imported; weir forwards the path as it came. weir: rewrite = { pattern "
                             "= \"…\", to = \"…\" } of the [[route]]");
  else if (location.modifier != Modifier::Exact && !location.path.ends_with('/') && uri.ends_with('/'))
    notes.add(directive, what + ": weir writes one slash where nginx writes two");
}

void read_pass(const Directive& directive, Location& location, ImportState& state) {
  auto& action = location.action;
  const auto url = directive.arguments.empty() ? std::string() : directive.arguments.front();
  const auto end = url.find("://");
  const bool plain = directive.name == "grpc_pass" && end == std::string::npos;
  const auto scheme = plain ? std::string("grpc") : url.substr(0, end);
  auto rest = plain ? url : url.substr(std::min(url.size(), end + 3));
  constexpr std::array<std::string_view, 4> kSchemes{"http", "https", "grpc", "grpcs"};
  if (url.find('$') != std::string::npos ||
      std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    state.notes.add(directive, url + ": no equal for variables in an address; weir answers 502");
    action.status = kBadGateway;
    return;
  }
  const bool socket = rest.starts_with("unix:");
  const auto path = rest.find(socket ? ':' : '/', socket ? 5 : 0);
  const auto uri = path == std::string::npos ? std::string() : rest.substr(path + (socket ? 1 : 0));
  action.scheme = scheme;
  action.upstream = rest.substr(0, path);
  read_uri(directive, uri, location, state.notes);
}

// Reads a directive that forwards requests. Returns false for all other directives.
bool read_action(const Directive& directive, Location& location, ImportState& state) {
  constexpr std::array<std::string_view, 4> kOther{"fastcgi_pass", "uwsgi_pass", "scgi_pass",
                                                   "memcached_pass"};
  if (directive.name == "proxy_pass" || directive.name == "grpc_pass") {
    read_pass(directive, location, state);
  } else if (std::find(kOther.begin(), kOther.end(), directive.name) != kOther.end()) {
    state.notes.add(directive, "no equal; weir answers 502");
    location.action.status = kBadGateway;
  } else {
    return false;
  }
  return true;
}

void note_nested(const Directive& directive, const Location& outer, Location& inner, Notes& notes) {
  if (is_regex(outer) || is_regex(inner))
    notes.add(
        directive,
        "no equal for a regular expression within a location; other locations take its requests. weir: a "
        "[[route]] before the one of " +
            outer.path);
}

// Adds notes on what nginx and weir do differently in a location that forwards requests.
void note_forwarding(const Directive& directive, const Location& location, Notes& notes) {
  const bool prefix = location.modifier == Modifier::Prefix || location.modifier == Modifier::FirstPrefix;
  if (prefix && location.path.size() > 1 && location.path.ends_with('/'))
    notes.add(directive, "redirect from " + location.path.substr(0, location.path.size() - 1) + " to " +
                             location.path +
                             ": not imported; weir: a [[route]] with respond = { status = 301, location = "
                             "\"…\" }");
  if (!location.scope.passes_host)
    notes.add(directive,
              "nginx sends the upstream's name as Host; weir passes the client's on, or sends host of the "
              "[[upstream]]");
}

// Reads limit_except. weir refuses every method that limit_except does not name. As in nginx, GET also
// permits HEAD.
void read_methods(const Directive& directive, Location& location, Notes& notes) {
  for (auto method : directive.arguments) {
    for (char& c : method) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
    location.methods.push_back(method);
    if (method == "GET") location.methods.emplace_back("HEAD");
  }
  const auto& block = directive.block;
  if (block.size() != 1 || block[0].name != "deny" || block[0].arguments != std::vector<std::string>{"all"})
    notes.add(directive, "no equal for its block; weir answers 403 to other methods");
}

// Returns true if nginx refuses all requests to the location by its address rules.
bool denies_all(const Scope& scope) {
  return !scope.access.empty() && !scope.access.front().allow && scope.access.front().block.empty();
}

// Reads the settings and the action of a location. Skips nested locations, which must be read later: a nested
// location inherits all settings of this location, even those that follow the nested one in the file.
void read_settings(const Directive& directive, Location& location, const Server& server, ImportState& state) {
  ScopeReader scope(location.scope, state);
  const Directive* answers = nullptr;
  bool acts = false;
  bool internal = false;
  for (const auto& inner : directive.block) {
    if (inner.name == "location") continue;
    if (inner.name == "internal")
      internal = true;
    else if (inner.name == "limit_except")
      read_methods(inner, location, state.notes);
    else if (inner.name == "return")
      answers = answers == nullptr ? &inner : answers;
    else if (read_action(inner, location, state))
      acts = true;
    else if (!scope.read(inner))
      state.notes.add_untranslated(inner);
  }
  if (internal)
    location.action = {.scheme = {}, .upstream = {}, .limited = false, .status = kNotFound, .body = {}};
  else if (answers != nullptr)
    location.action = read_return(*answers, server, state.notes);
  else if (!acts && !denies_all(location.scope) && location.scope.guards.empty())
    state.notes.add(directive, location.path + ": no equal for files; weir answers 404");
  else if (!location.action.scheme.empty())
    note_forwarding(directive, location, state.notes);
  close_if_guarded(location);
}

// Returns the variables that have the same value for all requests of a server.
Constants constants_of(const Server& server) {
  Constants constants;
  const auto is_tls = [](const Listen& listen) { return listen.tls; };
  if (std::none_of(server.listens.begin(), server.listens.end(), is_tls))
    constants.emplace("scheme", "http");
  else if (std::all_of(server.listens.begin(), server.listens.end(), is_tls))
    constants.emplace("scheme", "https");
  if (!server.names.empty() && server.names.front().kind == HostName::Kind::Exact)
    constants.emplace("server_name", server.names.front().pattern);
  return constants;
}

// Returns why weir cannot redirect to the URL; empty if weir can. The reason may be a variable without a
// placeholder.
std::string fault_of_redirect(const PlaceholderText& url) {
  if (!url.unknown.empty()) return "no placeholder for " + url.unknown;
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (url.text.empty() || !std::all_of(url.text.begin(), url.text.end(), visible))
    return "no equal for a URL with other characters than visible ASCII";
  const auto parsed = policy::TextTemplate::parse(url.text);
  return parsed ? policy::fault_of_location(*parsed) : parsed.error().message;
}

// Reads a `return` that redirects. If weir cannot redirect to the URL, adds a note and makes the location
// answer 404.
void read_redirect(const Directive& directive, const Server& server, Action& action, Notes& notes) {
  auto text = directive.arguments.empty() ? std::string() : directive.arguments.back();
  constexpr std::string_view kHost = "$http_host";
  if (const auto at = text.find(kHost); at != std::string::npos) {
    notes.add(directive, "$http_host: weir redirects to the host without its port");
    text.replace(at, kHost.size(), "$host");
  }
  auto url = with_placeholders(text, constants_of(server));
  if (const auto fault = fault_of_redirect(url); !fault.empty()) {
    notes.add(directive, text + ": " + fault +
                             "; weir answers 404. weir: respond = { status = 308, location = "
                             "\"https://{host}{uri}\" } of the [[route]]");
    return;
  }
  action.location = std::move(url.text);
  const auto code = parse_number(directive.arguments.front());
  constexpr unsigned kFound = 302;
  action.status = code ? static_cast<unsigned>(*code) : kFound;
}

bool is_redirect(const Directive& directive) {
  constexpr std::array<std::string_view, 5> kStatuses{"301", "302", "303", "307", "308"};
  const auto& words = directive.arguments;
  if (words.empty() || !parse_number(words[0])) return true;  // `return URL;`
  return words.size() == 2 && std::find(kStatuses.begin(), kStatuses.end(), words[0]) != kStatuses.end();
}

}  // namespace

// nginx executes `if` and `return` before it applies limits and other guards. So only an `if` can guard the
// answer of a `return`.
void close_if_guarded(Location& location) {
  constexpr unsigned kFirstRedirect = 300;
  const auto& guards = location.scope.guards;
  auto& action = location.action;
  const bool shows = action.location.empty() && action.status < kFirstRedirect;
  if (guards.empty() || (!action.limited && !(guards.contains("if") && shows))) return;
  action = {.scheme = {}, .upstream = {}, .limited = true, .status = 403, .body = {}};
}

Action read_return(const Directive& directive, const Server& server, Notes& notes) {
  Action action{.scheme = {}, .upstream = {}, .limited = false, .status = kNotFound, .body = {}};
  const auto& words = directive.arguments;
  if (is_redirect(directive)) {
    read_redirect(directive, server, action, notes);
    return action;
  }
  const auto code = parse_number(words[0]);
  if (*code < 200 || *code > 599) {
    notes.add(directive, words[0] + ": no equal; weir answers 404");
    return action;
  }
  if (*code == 444)
    notes.add(directive, "444: no equal; weir answers with status 444, and nginx closes the connection");
  action.status = static_cast<unsigned>(*code);
  if (words.size() != 2) return action;
  const bool bodiless = *code == 204 || *code == 205 || *code == 304;
  if (words[1].find('$') != std::string::npos)
    notes.add(directive, "no equal for variables in a text; weir's answer has no body");
  else if (!bodiless)
    action.body = words[1];
  return action;
}

void read_location(const Directive& directive, const Scope& outer, Server& server, ImportState& state) {
  Location location{.position = directive.position, .path = {}, .scope = outer, .action = {}};
  if (!read_path(directive, location))
    return state.notes.add(directive, "no equal for named locations; the location is left out");
  read_settings(directive, location, server, state);
  for (const auto& inner : directive.block) {
    if (inner.name != "location") continue;
    Location nested{.position = inner.position, .path = {}, .scope = {}, .action = {}};
    if (read_path(inner, nested) && (is_regex(location) || is_regex(nested)))
      note_nested(inner, location, nested, state.notes);
    else
      read_location(inner, location.scope, server, state);
  }
  server.locations.push_back(std::move(location));
}

}  // namespace weir::cli::nginx
