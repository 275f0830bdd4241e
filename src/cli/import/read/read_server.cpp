#include "cli/import/read/read_server.hpp"

#include "cli/import/read/read_location.hpp"
#include "cli/import/read/read_upstream.hpp"
#include "cli/import/syntax/nginx_values.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/policy/routing/patterns.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::cli::nginx {

namespace {

// Returns the address of a `listen` directive in weir's notation; empty if the text is no address.
std::string listen_address(const std::string& text) {
  auto address = text;
  if (parse_number(text))
    address = "0.0.0.0:" + text;
  else if (text.starts_with("*:"))
    address = "0.0.0.0" + text.substr(1);
  address = address_with_port(address, "80");
  return base::parse_endpoint(address) ? address : std::string();
}

void read_listen(const Directive& directive, Server& server, Notes& notes) {
  const auto& words = directive.arguments;
  Listen listen{.position = directive.position, .address = words.empty() ? "" : listen_address(words[0])};
  if (listen.address.empty())
    return notes.add(directive, "found \"" + (words.empty() ? "" : words[0]) + "\", which is no address");
  listen.ipv6_only = listen.address.starts_with("[::]:");
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "ipv6only=off") listen.ipv6_only = false;
    if (words[i] == "ssl") listen.tls = true;
    if (words[i] == "http2") listen.http2 = true;
    if (words[i] == "proxy_protocol") listen.proxy_protocol = true;
    if (words[i] == "default_server" || words[i] == "default") listen.is_default = true;
    if (words[i] == "quic") return notes.add(directive, "quic: no equal; weir has no HTTP/3");
  }
  server.listens.push_back(std::move(listen));
}

// Returns weir's patterns for a name in server_name; empty if nginx matches no host with this name.
std::vector<HostName> host_patterns(const std::string& name) {
  using enum HostName::Kind;
  if (name.empty() || name == "_" || name.starts_with('$')) return {};
  if (name.starts_with('~')) return {{Regex, "~" + re2_notation(name.substr(1))}};
  if (name.starts_with('.')) return {{Exact, name.substr(1)}, {Leading, "*" + name}};
  if (name.ends_with(".*"))
    return {{Trailing, "~^" + literal_pattern(name.substr(0, name.size() - 1)) + ".+$"}};
  return {{name.starts_with('*') ? Leading : Exact, name}};
}

void read_names(const Directive& directive, Server& server, Notes& notes) {
  server.named = server.named || (!directive.arguments.empty() && !directive.arguments.front().empty());
  for (const auto& name : directive.arguments) {
    if (name.empty() || name.starts_with('$')) notes.add(directive, "\"" + name + "\": no equal");
    for (auto& host : host_patterns(name)) {
      const auto match = policy::HostMatch::parse(host.pattern);
      if (!match || host.pattern.find("${") != std::string::npos) {
        notes.add(directive, name + ": no equal" + (match ? "" : "; weir expects " + match.error().message));
        continue;
      }
      if (server.label.empty()) server.label = name;
      server.names.push_back(std::move(host));
    }
  }
}

bool is_switch(const Directive& directive) {
  return directive.name == "http2" || directive.name == "ssl";
}

// Turns on HTTP/2 or TLS for all listeners of a server, for `http2 on;` and the old `ssl on;`.
void apply_switch(const Directive& directive, Server& server) {
  const bool on = !directive.arguments.empty() && directive.arguments[0] == "on";
  for (auto& listen : server.listens) (directive.name == "ssl" ? listen.tls : listen.http2) |= on;
}

// Returns the value of a key of [server] in TOML; empty if weir import does not understand the directive.
// `kind`: see ProcessKey.
std::string process_value(const Directive& directive, std::string_view kind) {
  const auto& words = directive.arguments;
  if (words.empty()) return {};
  if (kind == "time") {
    const auto time = parse_time(words[0]);
    return time && time->count() != 0 ? toml_time(*time) : std::string();
  }
  if (kind == "switch") return words[0] == "on" ? "true" : "false";
  if (kind == "workers") return words[0] == "auto" ? "0" : parse_number(words[0]) ? words[0] : std::string();
  const auto count = parse_number(words[0]);
  const auto size = words.size() == 2 ? parse_size(words[1]) : std::nullopt;
  constexpr std::uint64_t kMost = 1 << 20;
  return count && size && *count <= kMost && *size <= kMost ? toml_size(*count * *size) : std::string();
}

struct ProcessKey {
  std::string_view directive, key, kind;
};
constexpr std::array kProcessKeys =
    std::to_array<ProcessKey>({{"client_header_timeout", "head_timeout", "time"},
                               {"client_body_timeout", "body_timeout", "time"},
                               {"send_timeout", "write_timeout", "time"},
                               {"keepalive_timeout", "idle_timeout", "time"},
                               {"worker_shutdown_timeout", "drain", "time"},
                               {"underscores_in_headers", "underscores_in_headers", "switch"},
                               {"worker_processes", "workers", "workers"},
                               {"large_client_header_buffers", "max_head", "buffers"}});

void read_access_log(const Directive& directive, ImportState& state) {
  auto& log = state.result.access_log;
  const auto word = directive.arguments.empty() ? std::string() : directive.arguments[0];
  const auto target = word == "off" ? word : absolute(state, word);
  if (log == target) return;
  if (!log.empty()) return state.notes.add(directive, word + ": not imported; weir has one access log");
  if (word != "off" && (word.find('$') != std::string::npos || word.starts_with("syslog:")))
    return state.notes.add(directive, word + ": no equal; weir writes a file or standard output");
  if (word != "off") state.notes.add(directive, "weir writes lines of JSON; weir: fields of [log]");
  log = target;
}

void read_protocols(const Directive& directive, Tls& tls, Notes& notes) {
  const auto has = [&](const char* name) {
    return std::find(directive.arguments.begin(), directive.arguments.end(), name) !=
           directive.arguments.end();
  };
  tls.min_version = has("TLSv1.2") || !has("TLSv1.3") ? "1.2" : "1.3";
  for (const char* old : {"SSLv3", "TLSv1", "TLSv1.1"})
    if (has(old)) notes.add(directive, std::string(old) + ": no equal; weir begins at TLS 1.2");
}

// Returns a location for requests that match no other location.
Location for_all(const Server& server, Action action) {
  return {.position = server.position, .path = "/", .scope = server.scope, .action = std::move(action)};
}

bool is_for_all(const Location& location) {
  return location.path == "/" &&
         (location.modifier == Modifier::Prefix || location.modifier == Modifier::FirstPrefix);
}

void read_locations(const Directive& directive, Server& server, ImportState& state) {
  const bool answers = !server.locations.empty();
  for (const auto& inner : directive.block) {
    if (inner.name != "location") continue;
    if (answers)
      state.notes.add(inner, "is never used: its server answers all requests itself");
    else
      read_location(inner, server.scope, server, state);
  }
  if (std::any_of(server.locations.begin(), server.locations.end(), is_for_all)) return;
  state.notes.add(directive, "no equal for files; weir answers 404 to requests for no location");
  server.locations.push_back(for_all(server, {}));
}

void read_server_settings(const Directive& directive, Server& server, ImportState& state) {
  ScopeReader scope(server.scope, state);
  bool own = false;
  const Directive* answers = nullptr;
  for (const auto& inner : directive.block) {
    const auto& name = inner.name;
    if (name == "location") continue;
    if (name == "listen")
      read_listen(inner, server, state.notes);
    else if (name == "server_name")
      read_names(inner, server, state.notes);
    else if (name == "return")
      answers = answers == nullptr ? &inner : answers;
    else if (!read_tls(inner, server.tls, own, state) && !is_switch(inner) &&
             !read_process_key(inner, state) && !scope.read(inner))
      state.notes.add_untranslated(inner);
  }
  for (const auto& inner : directive.block)
    if (is_switch(inner)) apply_switch(inner, server);
  if (answers == nullptr) return;
  server.locations.push_back(for_all(server, read_return(*answers, server, state.notes)));
  close_if_guarded(server.locations.back());
}

bool has_listen(const Directive& server) {
  return std::any_of(server.block.begin(), server.block.end(),
                     [](const Directive& inner) { return inner.name == "listen"; });
}

}  // namespace

bool read_tls(const Directive& directive, Tls& tls, bool& own, ImportState& state) {
  const auto& name = directive.name;
  const auto word = directive.arguments.empty() ? std::string() : directive.arguments[0];
  const auto file = word.empty() ? word : absolute(state, word);
  if (name == "ssl_certificate") {
    if (!std::exchange(own, true)) tls.certificates.clear();
    if (tls.certificates.empty() || !tls.certificates.back().cert.empty()) tls.certificates.emplace_back();
    tls.certificates.back().cert = file;
  } else if (name == "ssl_certificate_key" || name == "ssl_stapling_file") {
    const bool is_key = name == "ssl_certificate_key";
    const auto open = std::find_if(tls.certificates.begin(), tls.certificates.end(),
                                   [&](const Certificate& c) { return (is_key ? c.key : c.ocsp).empty(); });
    if (open != tls.certificates.end()) (is_key ? open->key : open->ocsp) = file;
  } else if (name == "ssl_protocols") {
    read_protocols(directive, tls, state.notes);
  } else if (name == "ssl_client_certificate") {
    tls.client_ca = file;
  } else if (name == "ssl_trusted_certificate") {
    tls.trusted_ca = file;
  } else if (name == "ssl_crl") {
    tls.client_crl = file;
  } else if (name == "ssl_verify_client") {
    tls.client_auth = word == "on" ? "require" : word == "optional" ? "optional" : "";
    if (word == "optional_no_ca") state.notes.add(directive, word + ": no equal");
  } else {
    return false;
  }
  return true;
}

bool read_process_key(const Directive& directive, ImportState& state) {
  if (directive.name == "access_log") {
    read_access_log(directive, state);
    return true;
  }
  const auto known = std::find_if(kProcessKeys.begin(), kProcessKeys.end(),
                                  [&](const ProcessKey& key) { return key.directive == directive.name; });
  if (known == kProcessKeys.end()) return false;
  const auto value = process_value(directive, known->kind);
  if (value.empty()) {
    state.notes.add(directive, "not imported; weir: " + std::string(known->key) + " of [server]");
    return true;
  }
  const auto [entry, inserted] = state.result.keys.emplace(known->key, value);
  if (!inserted && entry->second != value)
    state.notes.add(directive,
                    "weir has one " + std::string(known->key) + " for all servers, " + entry->second);
  return true;
}

void read_server(const Directive& directive, const Scope& outer, const Tls& tls, ImportState& state) {
  Server server{.position = directive.position,
                .label = {},
                .named = false,
                .names = {},
                .listens = {},
                .scope = outer,
                .tls = tls,
                .locations = {}};
  read_server_settings(directive, server, state);
  // As in nginx, a server without `listen` gets the default address. A server whose `listen` was left out
  // gets none.
  if (server.listens.empty() && !has_listen(directive))
    server.listens.push_back({.position = directive.position, .address = "0.0.0.0:80"});
  if (server.label.empty()) server.label = "server" + std::to_string(state.result.servers.size() + 1);
  read_locations(directive, server, state);
  state.result.servers.push_back(std::move(server));
}

}  // namespace weir::cli::nginx
