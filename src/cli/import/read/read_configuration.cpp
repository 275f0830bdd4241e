#include "cli/import/read/read_configuration.hpp"

#include "cli/import/read/read_server.hpp"
#include "cli/import/read/read_upstream.hpp"
#include "cli/import/read/zone_key.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

// Directives of an http block that the second pass reads, because they inherit what stands below them.
bool is_inner(const Directive& directive) {
  return directive.name == "server" && directive.has_block;
}

void read_any_zone(const Directive& directive, Reading& reading) {
  Zone zone;
  const auto name = read_zone(directive, zone, reading.notes);
  auto& zones =
      directive.name == "limit_req_zone" ? reading.result.request_zones : reading.result.connection_zones;
  if (!name.empty()) zones.emplace(name, std::move(zone));
}

void read_http(const Directives& directives, Reading& reading) {
  Scope scope;
  Tls tls;
  ScopeReader settings(scope, reading);
  bool own = false;
  for (const auto& directive : directives) {
    const auto& name = directive.name;
    if (is_inner(directive) || name == "http") continue;
    if (name == "limit_req_zone" || name == "limit_conn_zone")
      read_any_zone(directive, reading);
    else if (name == "upstream")
      read_upstream(directive, reading);
    else if (!read_tls(directive, tls, own, reading) && !read_process_key(directive, reading) &&
             !settings.read(directive))
      reading.notes.add_untranslated(directive);
  }
  for (const auto& directive : directives)
    if (is_inner(directive)) read_server(directive, scope, tls, reading);
}

void read_top(const Directives& directives, Reading& reading) {
  const bool has_http = std::any_of(directives.begin(), directives.end(),
                                    [](const Directive& directive) { return directive.name == "http"; });
  if (!has_http) return read_http(directives, reading);
  for (const auto& directive : directives)
    if (directive.name == "http")
      read_http(directive.block, reading);
    else if (!read_process_key(directive, reading))
      reading.notes.add_untranslated(directive);
}

// weir believes X-Forwarded-For of trusted proxies. A proxy that writes another field may pass on whatever
// X-Forwarded-For a client sends.
void drop_unused_proxies(Configuration& result, Notes& notes) {
  const auto& header = result.real_ip_header;
  if (result.trusted.empty() || header == "X-Forwarded-For" || header == "proxy_protocol") return;
  result.trusted.clear();
  notes.add(result.real_ip_place, "set_real_ip_from",
            "no equal with real_ip_header " + header +
                "; weir counts the addresses of the proxies. weir: let them write X-Forwarded-For, and name "
                "them in "
                "[client] trusted_proxies");
}

}  // namespace

Configuration read_configuration(const Directives& directives, const std::string& folder, Notes& notes) {
  Configuration result;
  Reading reading{result, notes, folder};
  read_top(directives, reading);
  drop_unused_proxies(result, notes);
  return result;
}

}  // namespace weir::cli::nginx
