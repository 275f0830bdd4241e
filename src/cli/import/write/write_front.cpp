#include "cli/import/syntax/nginx_values.hpp"
#include "cli/import/write/toml_text.hpp"
#include "cli/import/write/write_toml.hpp"

#include <algorithm>

namespace weir::cli::nginx {

namespace {

std::string protocols_of(const Listen& listen) {
  if (listen.tls) return listen.http2 ? text_list({"h2", "http/1.1"}) : text_list({"http/1.1"});
  return listen.http2 ? text_list({"h2c", "http/1.1"}) : std::string();
}

std::string write_tls(const Tls& tls) {
  std::string certificates = "[";
  for (const auto& [cert, key, ocsp] : tls.certificates) {
    TomlPairs pairs{{"cert", toml_string(cert)}, {"key", toml_string(key)}};
    if (!ocsp.empty()) pairs.emplace_back("ocsp", toml_string(ocsp));
    if (certificates.size() > 1) certificates += ", ";
    certificates += inline_table(pairs);
  }
  TomlPairs lines{{"certificates", certificates + "]"}, {"min_version", toml_string(tls.min_version)}};
  if (!tls.client_auth.empty()) {
    lines.emplace_back("client_ca", toml_string(tls.client_ca));
    if (!tls.client_crl.empty()) lines.emplace_back("client_crl", toml_string(tls.client_crl));
    lines.emplace_back("client_auth", toml_string(tls.client_auth));
  }
  return "\n[listener.tls]\n" + lines_of(lines);
}

std::string write_listener(const WeirListener& listener, bool named) {
  const auto& listen = listener.listen;
  TomlPairs lines;
  if (named) lines.emplace_back("name", toml_string(listener.name));
  lines.emplace_back("address", toml_string(listen.address));
  if (const auto protocols = protocols_of(listen); !protocols.empty())
    lines.emplace_back("protocols", protocols);
  if (listen.proxy_protocol) lines.emplace_back("proxy_protocol", "true");
  return "\n[[listener]]  # " + listen.position.text() + "\n" + lines_of(lines) +
         (listen.tls ? write_tls(listener.tls) : std::string());
}

// Returns true if a limit's key has the client's address.
bool counts_addresses(const Configuration& configuration) {
  const auto any = [](const auto& zones) {
    return std::any_of(zones.begin(), zones.end(), [](const auto& zone) { return zone.second.by_address; });
  };
  return any(configuration.request_zones) || any(configuration.connection_zones);
}

std::string write_client(const Configuration& configuration) {
  TomlPairs lines;
  if (!configuration.trusted.empty()) lines.emplace_back("trusted_proxies", text_list(configuration.trusted));
  if (counts_addresses(configuration))
    lines.emplace_back("ipv6_prefix", "128  # as in nginx; 64 counts a network as one client");
  return lines.empty() ? std::string() : "\n[client]\n" + lines_of(lines);
}

}  // namespace

std::optional<std::optional<std::uint64_t>> common_max_body(const Layout& layout) {
  if (layout.routes.empty()) return std::nullopt;
  const auto& first = layout.routes.front().location->scope.max_body;
  const bool same = std::all_of(layout.routes.begin(), layout.routes.end(), [&](const WeirRoute& route) {
    return route.location->scope.max_body == first;
  });
  if (!same) return std::nullopt;
  return first;
}

std::string write_front(const Configuration& configuration, const Layout& layout) {
  TomlPairs server(configuration.keys.begin(), configuration.keys.end());
  if (const auto common = common_max_body(layout); common && *common)
    server.emplace_back("max_body", toml_size(**common));
  std::string text = server.empty() ? std::string() : "\n[server]\n" + lines_of(server);
  if (!configuration.access_log.empty())
    text += "\n[log]\n" + lines_of({{"access", toml_string(configuration.access_log)}});
  text +=
      "\n[admin]  # dashboard, metrics, weir top\n" + lines_of({{"address", toml_string("127.0.0.1:9900")}});
  const bool named = std::any_of(layout.routes.begin(), layout.routes.end(), [](const WeirRoute& route) {
    return !route.match.empty() && route.match.front().first == "listener";
  });
  text += write_client(configuration);
  for (const auto& listener : layout.listeners) text += write_listener(listener, named);
  return text;
}

}  // namespace weir::cli::nginx
