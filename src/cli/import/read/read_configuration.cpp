#include "cli/import/read/read_configuration.hpp"

#include "cli/import/read/read_server.hpp"
#include "cli/import/read/read_upstream.hpp"
#include "cli/import/read/zone_key.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

// Returns true for a block in http that must be read after the settings of http. The block inherits all these
// settings, even those that follow the block in the file.
bool is_inner(const Directive& directive) {
  return directive.name == "server" && directive.has_block;
}

void read_any_zone(const Directive& directive, ImportState& state) {
  Zone zone;
  const auto name = read_zone(directive, zone, state.notes);
  auto& zones =
      directive.name == "limit_req_zone" ? state.result.request_zones : state.result.connection_zones;
  if (!name.empty()) zones.emplace(name, std::move(zone));
}

void read_http(const Directives& directives, ImportState& state) {
  Scope scope;
  Tls tls;
  ScopeReader settings(scope, state);
  bool own = false;
  for (const auto& directive : directives) {
    const auto& name = directive.name;
    if (is_inner(directive) || name == "http") continue;
    if (name == "limit_req_zone" || name == "limit_conn_zone")
      read_any_zone(directive, state);
    else if (name == "upstream")
      read_upstream(directive, state);
    else if (!read_tls(directive, tls, own, state) && !read_process_key(directive, state) &&
             !settings.read(directive))
      state.notes.add_untranslated(directive);
  }
  for (const auto& directive : directives)
    if (is_inner(directive)) read_server(directive, scope, tls, state);
}

void read_top(const Directives& directives, ImportState& state) {
  const bool has_http = std::any_of(directives.begin(), directives.end(),
                                    [](const Directive& directive) { return directive.name == "http"; });
  if (!has_http) return read_http(directives, state);
  for (const auto& directive : directives)
    if (directive.name == "http")
      read_http(directive.block, state);
    else if (!read_process_key(directive, state))
      state.notes.add_untranslated(directive);
}

// Returns why weir cannot find the client's address as nginx does; empty if weir can. For this, nginx must
// use X-Forwarded-For with real_ip_recursive, and all locations must trust the same proxies (`agree`).
std::string fault_of_proxies(const RealIp& real_ip, bool agree) {
  if (!agree) return "locations differ in this, and weir has one list of proxies for all";
  if (real_ip.header != "X-Forwarded-For") return "no equal with real_ip_header " + real_ip.header;
  if (!real_ip.recursive)
    return "no equal without real_ip_recursive on; weir skips all trusted addresses of X-Forwarded-For";
  return real_ip.complete ? std::string() : "no equal for one of the proxies";
}

// Makes weir answer 403 for locations whose access depends on the client's address, because weir does not
// know this address. Does not change locations whose access rules begin with `all`: they depend on no
// address.
void close_by_address(Configuration& result, Notes& notes) {
  for (auto& server : result.servers)
    for (auto& location : server.locations) {
      auto& access = location.scope.access;
      if (access.empty() || access.front().block.empty() || !location.action.limited) continue;
      access.clear();
      location.action = {.scheme = {}, .upstream = {}, .limited = true, .status = 403, .body = {}};
      notes.add(location.position, "location",
                "allow and deny: no equal without the client's address; weir answers 403");
    }
}

// Makes weir answer 403 for locations with `deny unix:` in servers that listen on a unix socket. weir cannot
// refuse only the clients at unix sockets.
void close_to_unix_peers(Configuration& result, Notes& notes) {
  for (auto& server : result.servers) {
    const bool is_unix = std::any_of(server.listens.begin(), server.listens.end(), [](const Listen& listen) {
      return listen.address.starts_with("unix:");
    });
    if (!is_unix) continue;
    for (auto& location : server.locations) {
      if (location.scope.unix_peers != PeerAccess::Denied || !location.action.limited) continue;
      location.scope.access.clear();
      location.action = {.scheme = {}, .upstream = {}, .limited = true, .status = 403, .body = {}};
      notes.add(location.position, "location",
                "deny unix: has no equal where the server also listens at a unix socket; weir answers 403. "
                "weir: two servers, one for the socket");
    }
  }
}

// Sets the proxies that weir trusts, if all locations have the same set_real_ip_from and weir can find the
// client as nginx does. Otherwise adds a note and trusts no proxy. weir then does not know the client's
// address, so weir answers 403 where nginx decides by address (allow, deny).
void settle_proxies(Configuration& result, Notes& notes) {
  const RealIp* chosen = nullptr;
  bool agree = true;
  for (const auto& server : result.servers)
    for (const auto& location : server.locations) {
      if (!location.action.limited) continue;
      const auto& own = location.scope.real_ip;
      agree = agree && (chosen == nullptr || *chosen == own);
      if (chosen == nullptr || chosen->position.file == nullptr) chosen = &own;
    }
  if (chosen == nullptr || chosen->position.file == nullptr) return;  // there is no set_real_ip_from
  const auto fault = fault_of_proxies(*chosen, agree);
  if (fault.empty()) {
    result.trusted = chosen->trusted;
    return;
  }
  notes.add(chosen->position, "set_real_ip_from",
            fault +
                "; weir counts the addresses of the proxies. weir: let them write X-Forwarded-For, and name "
                "them in [client] trusted_proxies");
  close_by_address(result, notes);
}

}  // namespace

Configuration read_configuration(const Directives& directives, const std::string& folder, Notes& notes) {
  Configuration result;
  ImportState state{result, notes, folder};
  read_top(directives, state);
  close_to_unix_peers(result, notes);
  settle_proxies(result, notes);
  return result;
}

}  // namespace weir::cli::nginx
