#include "cli/import/read/read_location.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr unsigned kNotFound = 404;
constexpr unsigned kBadGateway = 502;

// Sets the modifier and the path. Returns false for a named location, which no request reaches by its path.
bool read_place(const Directive& directive, Location& location) {
  auto words = directive.arguments;
  if (words.empty()) return false;
  if (words.size() == 1) {  // nginx also takes a modifier without a blank behind it
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

// Notes the URI of proxy_pass, which replaces the path of the location. weir cannot change paths yet.
void note_path(const Directive& directive, const std::string& uri, const Location& location, Notes& notes) {
  if (uri.empty() || (!is_regex(location) && uri == location.path)) return;
  notes.add(directive, "path " + uri + " in place of " + location.path +
                           ": no equal yet; weir forwards the path as it came");
}

void read_pass(const Directive& directive, Location& location, Reading& reading) {
  auto& action = location.action;
  const auto url = directive.arguments.empty() ? std::string() : directive.arguments.front();
  const auto end = url.find("://");
  const bool plain = directive.name == "grpc_pass" && end == std::string::npos;
  const auto scheme = plain ? std::string("grpc") : url.substr(0, end);
  auto rest = plain ? url : url.substr(std::min(url.size(), end + 3));
  constexpr std::array<std::string_view, 4> kSchemes{"http", "https", "grpc", "grpcs"};
  if (url.find('$') != std::string::npos ||
      std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    reading.notes.add(directive, url + ": no equal for variables in an address; weir answers 502");
    action.status = kBadGateway;
    return;
  }
  const bool socket = rest.starts_with("unix:");
  const auto path = rest.find(socket ? ':' : '/', socket ? 5 : 0);
  const auto uri = path == std::string::npos ? std::string() : rest.substr(path + (socket ? 1 : 0));
  action.scheme = scheme;
  action.upstream = rest.substr(0, path);
  note_path(directive, uri, location, reading.notes);
}

// Reads what the location does with requests. Returns false if the directive says nothing about that.
bool read_action(const Directive& directive, Location& location, Reading& reading) {
  constexpr std::array<std::string_view, 4> kOther{"fastcgi_pass", "uwsgi_pass", "scgi_pass",
                                                   "memcached_pass"};
  if (directive.name == "proxy_pass" || directive.name == "grpc_pass") {
    read_pass(directive, location, reading);
  } else if (std::find(kOther.begin(), kOther.end(), directive.name) != kOther.end()) {
    reading.notes.add(directive, "no equal; weir answers 502");
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

// Notes what differs for a location that forwards requests.
void note_forwarding(const Directive& directive, const Location& location, Notes& notes) {
  const bool prefix = location.modifier == Modifier::Prefix || location.modifier == Modifier::FirstPrefix;
  if (prefix && location.path.size() > 1 && location.path.ends_with('/'))
    notes.add(directive, "redirect from " + location.path.substr(0, location.path.size() - 1) + " to " +
                             location.path + ": no equal yet");
  if (!location.scope.passes_host)
    notes.add(directive, "nginx sends the upstream's name as Host; weir passes the client's Host on");
}

// Reads the settings and the action of a location. Nested locations come later, because they inherit settings
// that stand below them.
void read_settings(const Directive& directive, Location& location, Reading& reading) {
  ScopeReader scope(location.scope, reading);
  const Directive* answers = nullptr;
  bool acts = false;
  bool internal = false;
  for (const auto& inner : directive.block) {
    if (inner.name == "location") continue;
    if (inner.name == "internal")
      internal = true;
    else if (inner.name == "return")
      answers = answers == nullptr ? &inner : answers;
    else if (read_action(inner, location, reading))
      acts = true;
    else if (!scope.read(inner))
      reading.notes.add_untranslated(inner);
  }
  if (internal)
    location.action = {.scheme = {}, .upstream = {}, .limited = false, .status = kNotFound, .body = {}};
  else if (answers != nullptr)
    location.action = read_return(*answers, reading.notes);
  else if (!acts)
    reading.notes.add(directive, location.path + ": no equal for files; weir answers 404");
  else if (!location.action.scheme.empty())
    note_forwarding(directive, location, reading.notes);
  if (!location.scope.guard.empty() && location.action.limited)
    location.action = {.scheme = {}, .upstream = {}, .limited = true, .status = 403, .body = {}};
}

}  // namespace

Action read_return(const Directive& directive, Notes& notes) {
  Action action{.scheme = {}, .upstream = {}, .limited = false, .status = kNotFound, .body = {}};
  const auto& words = directive.arguments;
  const auto code = words.empty() ? std::nullopt : parse_number(words[0]);
  const bool redirects =
      !code || (*code >= 301 && *code <= 308 && *code != 304 && *code != 306 && words.size() == 2);
  if (redirects) {
    notes.add(directive,
              (words.empty() ? "" : words.back()) + ": no equal yet for redirects; weir answers 404");
    return action;
  }
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

void read_location(const Directive& directive, const Scope& outer, Server& server, Reading& reading) {
  Location location{.place = directive.place, .path = {}, .scope = outer, .action = {}};
  if (!read_place(directive, location))
    return reading.notes.add(directive, "no equal for named locations; the location is left out");
  read_settings(directive, location, reading);
  for (const auto& inner : directive.block) {
    if (inner.name != "location") continue;
    Location nested{.place = inner.place, .path = {}, .scope = {}, .action = {}};
    if (read_place(inner, nested) && (is_regex(location) || is_regex(nested)))
      note_nested(inner, location, nested, reading.notes);
    else
      read_location(inner, location.scope, server, reading);
  }
  server.locations.push_back(std::move(location));
}

}  // namespace weir::cli::nginx
