#include "cli/import/ingress/host_servers.hpp"

#include "cli/import/read/read_location.hpp"
#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/path_expression.hpp"

#include "weir/policy/routing/path_rewrite.hpp"
#include "weir/policy/routing/patterns.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr unsigned kNoPath = 404;
constexpr unsigned kForbidden = 403;
constexpr unsigned kNoBackend = 502;
constexpr unsigned kPermanentRedirect = 308;

Action answer(unsigned status, bool limited) {
  return {.scheme = {}, .upstream = {}, .limited = limited, .status = status, .body = {}};
}

// Returns the path of a rewrite-target with "$1" as weir's placeholder "{1}". Returns nullopt if the target
// has other variables, braces, a query or a host.
std::optional<std::string> rewritten_path(std::string_view target) {
  std::string path;
  if (!target.starts_with('/') && !target.starts_with('$')) return std::nullopt;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const char c = target[i];
    if (c == '{' || c == '}' || c == '?') return std::nullopt;
    if (c != '$') {
      path += c;
      continue;
    }
    if (++i == target.size() || target[i] < '1' || target[i] > '9') return std::nullopt;
    path += std::string("{") + target[i] + "}";
  }
  return path;
}

class ServerBuilder {
 public:
  ServerBuilder(Configuration& result, Notes& notes) : result_(result), notes_(notes) {}

  // Adds the servers of one host, as add_servers() says.
  void add(const std::string& name, const IngressHost& host, bool any_tls) {
    const bool tls = host.certificate.has_value();
    result_.servers.push_back(server_of(name, host, false));
    if (tls || (name.empty() && any_tls)) result_.servers.push_back(server_of(name, host, true));
  }

 private:
  [[nodiscard]] Server server_of(const std::string& name, const IngressHost& host, bool tls) {
    Server server{.position = host.position,
                  .label = name.empty() ? "any" : name,
                  .named = !name.empty(),
                  .names = {},
                  .listens = {},
                  .scope = {},
                  .tls = {},
                  .locations = {}};
    if (tls) server.label += " https";
    if (!name.empty()) add_name(name, host.position, server);
    for (const auto& alias : host.aliases) add_name(alias, host.position, server);
    server.listens.push_back({.position = host.position,
                              .address = tls ? "0.0.0.0:443" : "0.0.0.0:80",
                              .tls = tls,
                              .http2 = tls,
                              .is_default = name.empty()});
    if (tls && host.certificate && !host.certificate->cert.empty())
      server.tls.certificates.push_back(*host.certificate);
    for (const auto& path : host.paths) add_location(path, host, tls, server);
    add_app_root(host, server);
    add_root(server);
    return server;
  }

  // In the host of an Ingress, "*" stands for exactly one label. weir's "*." would match several, so the name
  // becomes a regular expression.
  void add_name(const std::string& name, const Position& position, Server& server) {
    HostName host{.kind = HostName::Kind::Exact, .pattern = name};
    if (name.starts_with("*."))
      host = {.kind = HostName::Kind::Regex, .pattern = "~^[^.]+" + literal_pattern(name.substr(1)) + "$"};
    if (policy::HostMatch::parse(host.pattern) && host.pattern.find("${") == std::string::npos)
      server.names.push_back(std::move(host));
    else
      notes_.add(position, "host", name + ": no equal");
  }

  void add_location(const HostPath& entry, const IngressHost& host, bool tls, Server& server) {
    Location location{.position = entry.path.position,
                      .path = entry.path.path,
                      .scope = entry.owner->settings.scope,
                      .action = action_of(entry, host, tls, server)};
    if (host.regex) {
      location.modifier = Modifier::RegexNoCase;
      location.path = "^" + entry.path.path;
    } else if (entry.path.type == "Exact") {
      location.modifier = Modifier::Exact;
    } else if (entry.path.type == "Prefix" && entry.path.path != "/") {
      // The path type Prefix with /a matches /a and all paths below /a/, but not /ab.
      auto exact = location;
      exact.modifier = Modifier::Exact;
      if (!has_exact(host, entry.path.path)) push_location(std::move(exact), entry, server);
      if (!location.path.ends_with('/')) location.path += '/';
    }
    push_location(std::move(location), entry, server);
  }

  // Adds the location. If the Ingress has CORS enabled and the location forwards requests, first adds a
  // location that answers the preflights (OPTIONS).
  static void push_location(Location location, const HostPath& entry, Server& server) {
    const auto& fields = entry.owner->settings.preflight;
    if (!fields.empty() && !location.action.scheme.empty()) {
      auto preflight = location;
      preflight.only_method = "OPTIONS";
      preflight.scope = {};
      preflight.scope.response.add = fields;
      preflight.action = answer(204, false);
      server.locations.push_back(std::move(preflight));
    }
    server.locations.push_back(std::move(location));
  }

  static bool has_exact(const IngressHost& host, const std::string& path) {
    return std::any_of(host.paths.begin(), host.paths.end(), [&](const HostPath& other) {
      return other.path.type == "Exact" && other.path.path == path;
    });
  }

  [[nodiscard]] Action action_of(const HostPath& entry, const IngressHost& host, bool tls,
                                 const Server& server) {
    const auto& settings = entry.owner->settings;
    const bool challenge = entry.path.path.starts_with("/.well-known/acme-challenge");
    if (!tls && !challenge && (settings.always_to_https || (settings.to_https && host.certificate))) {
      auto action = answer(kPermanentRedirect, false);
      action.location = "https://{host}{uri}";
      return action;
    }
    if (!settings.redirect.empty())
      return read_return(
          {.position = settings.redirect_position, .name = "redirect", .arguments = settings.redirect},
          server, notes_);
    if (!settings.scope.guards.empty()) return answer(kForbidden, true);
    const auto& service = entry.path.service;
    if (settings.scheme.empty()) return answer(kNoBackend, true);
    if (service.name.empty() || service.port.empty()) {
      notes_.add(entry.path.position, "backend",
                 "found no service with a port number; weir answers 502. weir: servers of an [[upstream]]");
      return answer(kNoBackend, true);
    }
    Action action{.scheme = settings.scheme,
                  .upstream = service.name + "." + entry.owner->ingress->space + ".svc:" + service.port,
                  .body = {}};
    return rewrites(entry) ? with_rewrite(entry, std::move(action)) : action;
  }

  [[nodiscard]] Action with_rewrite(const HostPath& entry, Action action) {
    const auto expression = path_expression(entry.path.path);
    const auto path = rewritten_path(entry.owner->settings.rewrite);
    const auto pattern = "(?i)" + expression.pattern;
    if (path && expression.exact && policy::PathPattern::parse(pattern, *path)) {
      action.pattern = pattern;
      action.path = *path;
      return action;
    }
    notes_.add(
        entry.path.position, "rewrite-target",
        entry.owner->settings.rewrite + " in place of " + entry.path.path +
            ": no equal; weir answers 502. weir: rewrite = { pattern = \"…\", to = \"…\" } of the [[route]]");
    return answer(kNoBackend, true);
  }

  void add_app_root(const IngressHost& host, Server& server) {
    if (host.app_root.empty()) return;
    const Directive redirect{.position = host.position,
                             .name = "app-root",
                             .arguments = {"302", "$scheme://$host" + host.app_root}};
    const auto same = [](const Location& one) { return one.modifier == Modifier::Exact && one.path == "/"; };
    if (std::none_of(server.locations.begin(), server.locations.end(), same))
      server.locations.push_back({.position = host.position,
                                  .modifier = Modifier::Exact,
                                  .path = "/",
                                  .scope = {},
                                  .action = read_return(redirect, server, notes_)});
  }

  static void add_root(Server& server) {
    const auto is_root = [](const Location& one) {
      return one.modifier == Modifier::Prefix && one.path == "/";
    };
    if (std::none_of(server.locations.begin(), server.locations.end(), is_root))
      server.locations.push_back(
          {.position = server.position, .path = "/", .scope = {}, .action = answer(kNoPath, false)});
  }

  Configuration& result_;
  Notes& notes_;
};

}  // namespace

bool rewrites(const HostPath& entry) {
  const auto& target = entry.owner->settings.rewrite;
  return !target.empty() && target != entry.path.path;
}

void add_servers(const std::string& name, const IngressHost& host, bool any_tls, Configuration& result,
                 Notes& notes) {
  ServerBuilder(result, notes).add(name, host, any_tls);
}

}  // namespace weir::cli::nginx
