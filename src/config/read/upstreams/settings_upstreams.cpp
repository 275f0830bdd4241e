// Reads [[upstream]].
#include "config/read/percentage.hpp"
#include "config/read/settings_sections.hpp"
#include "config/read/upstreams/server_address.hpp"

#include "weir/base/units.hpp"
#include "weir/config/locations.hpp"
#include "weir/http/target.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace weir::config {

namespace {

// Parses the text as an address and stores it in `server`. Returns what is wrong with the text; empty if the
// text is valid.
std::string read_address(std::string_view text, upstream::ServerSettings& server) {
  auto address = parse_server_address(text);
  if (!address) return address.error().message;
  server.tls = address->tls;
  server.address = std::move(address->endpoint);
  server.is_service = address->is_service;
  if (server.is_service || server.address.is_unix() || server.address.port != 0) return {};
  return "found " + in_quotes(server.address.to_string()) + "; expected a port from 1 to 65535 to connect to";
}

std::optional<limit::TokenBucket> read_limit(const TableReader& server) {
  const auto rate = server.rate("limit");
  if (!rate) return std::nullopt;
  auto bucket = limit::TokenBucket::make(*rate, rate->count);
  if (bucket) return *bucket;
  server.mistake("limit", bucket.error().message);
  return std::nullopt;
}

void read_server_table(const TableReader& table, upstream::ServerSettings& server) {
  server.weight = static_cast<std::uint32_t>(table.whole("weight"));
  if (server.is_service && table.has("weight"))
    table.mistake("weight", "found with a service, whose SRV records tell the weights; remove it");
  server.limit = read_limit(table);
  server.max_in_flight = static_cast<std::uint32_t>(table.whole("max_in_flight"));
  if (!table.has("server_name")) return;
  server.tls_name = table.text("server_name");
  if (!server.tls)
    table.mistake("server_name",
                  "found with an address that does not begin with https://; remove it, or write https://");
  else if (!is_host_name(server.tls_name))
    table.mistake("server_name",
                  "found " + in_quotes(server.tls_name) + "; expected a name such as \"api.example.com\"");
}

void read_server_of(const TableReader& upstream, const Node& node, std::size_t position,
                    const ReadContext& context, upstream::UpstreamSettings& into) {
  upstream::ServerSettings server;
  if (const auto* text = node.text()) {
    if (const auto wrong = read_address(*text, server); !wrong.empty())
      return upstream.mistake_in("servers", position, wrong);
  } else if (node.table() != nullptr) {
    const TableReader table(&node, node.line, upstream.path() + ".servers" + element_label("", position),
                            schema::kServerOfUpstream, upstream.source_file());
    const auto wrong = table.has("address") ? read_address(table.text("address"), server) : std::string();
    if (!wrong.empty()) table.mistake("address", wrong);
    read_server_table(table, server);
    if (!wrong.empty() || !table.has("address")) return;
  } else {
    if (!std::holds_alternative<Unreadable>(node.value))
      upstream.mistake_in("servers", position,
                          "found a list with " + std::string(type_name(node)) +
                              " in it; expected addresses such as \"127.0.0.1:9000\"");
    return;
  }
  if (!context.lines.emplace(name_of(into, server), node.line).second)
    return upstream.mistake_in(
        "servers", position,
        "found " + in_quotes(server.name()) +
            " a second time; expected each server once: give it a weight for more requests");
  into.servers.push_back(std::move(server));
}

void read_servers(const TableReader& table, const ReadContext& context, upstream::UpstreamSettings& into) {
  const auto* node = table.node("servers");
  if (node == nullptr) return;
  const auto* array = node->array();
  if (array == nullptr)
    return table.mistake("servers", "found " + std::string(type_name(*node)) +
                                        "; expected a list of addresses such as [\"127.0.0.1:9000\"]");
  if (array->empty())
    table.mistake("servers", "found none; expected at least one address such as \"127.0.0.1:9000\"");
  if (array->size() > upstream::kMaxServers)
    table.mistake("servers", "found " + std::to_string(array->size()) + "; expected at most " +
                                 std::to_string(upstream::kMaxServers) + " servers in one upstream");
  for (std::size_t i = 0; i < array->size(); ++i) read_server_of(table, (*array)[i], i, context, into);
  const auto is_service = [](const upstream::ServerSettings& server) { return server.is_service; };
  const auto service = std::find_if(into.servers.begin(), into.servers.end(), is_service);
  if (service != into.servers.end() && into.servers.size() > 1)
    table.mistake("servers", "found " + in_quotes(service->name()) +
                                 " beside other servers; expected a service alone, because its SRV records "
                                 "tell all servers, weights and priorities");
}

upstream::Ejection read_ejection(const TableReader& upstream) {
  const auto table = upstream.table("eject", schema::kEject);
  upstream::Ejection ejection{.failures = static_cast<unsigned>(table.whole("failures")),
                              .least = table.deadline("least"),
                              .most = table.deadline("most"),
                              .slow_start = upstream.duration("slow_start")};
  if (ejection.most < ejection.least)
    table.mistake("most", "found less than least; expected a duration of at least least");
  return ejection;
}

std::vector<policy::StatusRange> read_statuses(const TableReader& table) {
  const auto texts = table.texts("status");
  if (texts.empty()) table.mistake("status", "found none; expected at least one status such as \"200\"");
  std::vector<policy::StatusRange> statuses;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto range = policy::parse_statuses(texts[i]);
    if (!range)
      table.mistake_in("status", i, range.error().message);
    else if (range->first < 200)
      table.mistake_in("status", i,
                       "found " + in_quotes(texts[i]) +
                           "; expected statuses from 200 on, because 1xx is not a final response");
    else
      statuses.push_back(*range);
  }
  return statuses;
}

std::optional<upstream::HealthCheck> read_health(const TableReader& upstream, upstream::Protocol protocol) {
  if (!upstream.has("health")) return std::nullopt;
  const auto table = upstream.table("health", schema::kHealth);
  const bool by_grpc = table.has("grpc");
  if (by_grpc == table.has("path"))
    table.mistake(by_grpc ? "grpc" : "", by_grpc ? "found beside path; remove one of the two"
                                                 : "found neither path nor grpc; add path = \"/healthz\", or "
                                                   "grpc = \"\" for a gRPC server");
  else if (by_grpc && protocol == upstream::Protocol::Http1)
    table.mistake("grpc",
                  "found with protocol = \"http/1.1\"; write protocol = \"h2\" or \"h2c\" in the upstream");
  if (by_grpc && table.has("status"))
    table.mistake("status",
                  "found beside grpc; remove it, because a gRPC health check reads the answer's message");
  upstream::HealthCheck check{.path = table.text("path"),
                              .grpc = by_grpc ? std::optional(table.text("grpc")) : std::nullopt,
                              .interval = table.deadline("interval"),
                              .timeout = table.deadline("timeout"),
                              .unhealthy_after = static_cast<unsigned>(table.whole("unhealthy_after")),
                              .healthy_after = static_cast<unsigned>(table.whole("healthy_after")),
                              .statuses = read_statuses(table)};
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (table.has("path") &&
      (!check.path.starts_with('/') || !std::all_of(check.path.begin(), check.path.end(), visible)))
    table.mistake("path", "found " + in_quotes(check.path) + "; expected a path such as \"/healthz\"");
  return check;
}

upstream::Retry read_retry(const TableReader& upstream) {
  const auto table = upstream.table("retry", schema::kRetry);
  upstream::Retry retry{.attempts = static_cast<unsigned>(table.whole("attempts")),
                        .budget = read_percentage(table, "budget").value_or(0),
                        .backoff = table.duration("backoff")};
  retry.broken = retry.late = false;
  const auto on = table.texts("on");
  for (std::size_t i = 0; i < on.size(); ++i) {
    const auto range = policy::parse_statuses(on[i]);
    if (on[i] == "broken")
      retry.broken = true;
    else if (on[i] == "late")
      retry.late = true;
    else if (range && range->first >= 200)
      retry.statuses.push_back(*range);
    else
      table.mistake_in("on", i,
                       "found " + in_quotes(on[i]) +
                           "; expected \"broken\", \"late\", or a status such as \"503\" or \"5xx\"");
  }
  return retry;
}

// Reads `resolve` and `resolve_least`, the bounds of the time between look-ups of server names. Neither may
// be very short, because every weir queries the name servers, which other programs use as well.
void read_resolve(const TableReader& table, upstream::UpstreamSettings& upstream) {
  constexpr base::Duration kLeast{100'000};
  const auto most = upstream.resolve = table.duration("resolve");
  const bool once = most == base::Duration{0};
  if (!once && most < kLeast)
    table.mistake("resolve", "found less than " + base::to_string(kLeast) +
                                 "; expected that or more, or \"0s\" to look names up only at start");
  const auto least = upstream.resolve_least = table.duration("resolve_least");
  if (!table.has("resolve_least")) {
    if (!once) upstream.resolve_least = std::min(least, most);
  } else if (least < kLeast) {
    table.mistake("resolve_least", "found less than " + base::to_string(kLeast) + "; expected that or more");
  } else if (!once && least > most) {
    table.mistake("resolve_least", "found more than resolve; expected a duration of at most resolve");
  }
}

upstream::Timeouts read_timeouts(const TableReader& upstream) {
  const auto table = upstream.table("timeouts", schema::kTimeouts);
  upstream::Timeouts timeouts{.connect = table.deadline("connect"),
                              .response = table.deadline("response"),
                              .idle = table.deadline("idle"),
                              .tunnel = table.deadline("tunnel")};
  timeouts.connect_total = table.has("connect_total") ? table.deadline("connect_total")
                                                      : std::max(timeouts.connect_total, timeouts.connect);
  if (timeouts.connect_total < timeouts.connect)
    table.mistake("connect_total", "found less than connect; expected a duration of at least connect");
  timeouts.abandoned = table.duration("abandoned");
  if (table.has("total")) timeouts.total = table.deadline("total");
  timeouts.expect_continue =
      table.has("expect_continue")
          ? table.deadline("expect_continue")
          : std::min({timeouts.expect_continue, timeouts.response / 2, timeouts.total / 2});
  return timeouts;
}

// Reads `tls`. For each server that uses TLS, sets the name that the server's certificate must have, unless
// the server already has such a name.
void read_tls(const TableReader& upstream, const ReadContext& context, upstream::UpstreamSettings& settings) {
  const auto table = upstream.table("tls", schema::kUpstreamTls);
  settings.tls.ca = readable_file(table, "ca", context);
  settings.tls.cert = readable_file(table, "cert", context);
  settings.tls.key = readable_file(table, "key", context);
  settings.tls.verify = table.boolean("verify");
  const auto name = table.text("server_name");
  if (table.has("server_name") && !is_host_name(name))
    table.mistake("server_name",
                  "found " + in_quotes(name) + "; expected a name such as \"api.example.com\"");
  for (auto& server : settings.servers)
    if (server.tls && server.tls_name.empty())
      server.tls_name = !name.empty()       ? name
                        : server.is_service ? domain_of(server.address.host)
                                            : server.address.host;
  const auto speaks = [](const upstream::ServerSettings& server) { return server.tls; };
  if (!upstream.has("tls")) return;
  if (!settings.servers.empty() && std::none_of(settings.servers.begin(), settings.servers.end(), speaks))
    upstream.mistake(
        "tls", "found without a server that uses TLS; expected an address such as \"https://10.0.0.1:8443\"");
  if (table.has("cert") != table.has("key"))
    table.mistake(table.has("cert") ? "cert" : "key",
                  "found without the other; expected cert and key together");
  if (table.flawed() || table.has("cert") != table.has("key") || is_unreadable(settings.tls.ca) ||
      is_unreadable(settings.tls.cert) || is_unreadable(settings.tls.key))
    return;  // the mistake was reported already
  if (const auto made = net::make_tls_client_context(settings.tls); !made)
    table.mistake("", made.error().message);
}

// Reads `protocol` and `max_streams`. Must be called after the servers and `proxy_protocol` were read.
void read_protocol(const TableReader& table, upstream::UpstreamSettings& upstream) {
  using upstream::Protocol;
  const auto protocol = upstream.protocol = table.choice<Protocol>("protocol");
  upstream.max_streams = static_cast<std::uint32_t>(table.whole("max_streams"));
  upstream.tls.http1 = protocol == Protocol::Http1 || protocol == Protocol::Auto;
  upstream.tls.h2 = !upstream.tls.http1 || protocol == Protocol::Auto;
  const bool secure = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                  [](const auto& server) { return server.tls; });
  const bool plain = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                 [](const auto& server) { return !server.tls; });
  if (protocol == Protocol::H2c && secure)
    table.mistake("protocol",
                  "found \"h2c\" with a server that uses TLS; write \"h2\", which is HTTP/2 over TLS");
  if ((protocol == Protocol::H2 || protocol == Protocol::Auto) && plain)
    table.mistake("protocol",
                  "found " + in_quotes(table.text("protocol")) +
                      " with a server that uses no TLS; write \"h2c\", which is HTTP/2 without TLS, "
                      "or an address such as \"https://10.0.0.1:8443\"");
  if (protocol != Protocol::Http1 && upstream.proxy_protocol)
    table.mistake("protocol",
                  "found " + in_quotes(table.text("protocol")) +
                      " with proxy_protocol; a connection of HTTP/2 serves many clients, so write "
                      "\"http/1.1\" or remove proxy_protocol");
}

std::string read_name(const TableReader& table, std::set<std::string>& taken) {
  auto name = table.text("name");
  if (table.has("name") && !is_plain_name(name))
    table.mistake(
        "name", "found " + in_quotes(name) + "; expected 1 to 128 printable ASCII characters but \" and \\");
  else if (table.has("name") && !taken.insert(name).second)
    table.mistake("name", "found " + in_quotes(name) + " a second time; expected a unique name");
  return name;
}

// Reads `host`. Returns an empty text if weir forwards the client's Host.
std::string read_host(const TableReader& table) {
  auto host = table.text("host");
  if (host == "{host}") return {};
  if (table.has("host") && (host.empty() || !http::valid_authority(host)))
    table.mistake("host", "found " + in_quotes(host) +
                              "; expected a host such as \"api.internal\" or \"api.internal:8080\", or "
                              "\"{host}\" for the client's");
  return host;
}

void read_balance(const TableReader& table, const ReadContext& context,
                  upstream::UpstreamSettings& upstream) {
  upstream.balance = table.choice<upstream::Balance>("balance");
  if (!table.has("hash_key")) {
    upstream.hash_key = {*policy::parse_key_part("api_key|ip")};
    return;
  }
  upstream.hash_key = read_key(table, "hash_key", context);
  if (upstream.balance != upstream::Balance::Hash)
    table.mistake("hash_key", "found without balance = \"hash\"; add it, or remove this key");
  else if (upstream.hash_key.empty() && table.texts("hash_key").empty())
    table.mistake("hash_key", "found none; expected at least one attribute such as \"api_key|ip\"");
  else if (policy::reads_body(upstream.hash_key))
    table.mistake(
        "hash_key",
        "found json: or form:, but weir chooses servers without the body; expected another attribute");
}

}  // namespace

std::string about_port(std::string_view authority) {
  const auto read = base::parse_endpoint(authority);
  // If the text contains '@', it may contain a password, so messages must not show it.
  if (read || authority.find('@') != std::string_view::npos) return {};
  const auto fault = read.error();
  const std::string_view said = fault.message;
  const auto start = said.find("the port ");
  if (start == std::string_view::npos || said.find("is missing") != std::string_view::npos) return {};
  return std::string(said.substr(start, said.find("; write") - start)) + "; ";
}

std::vector<upstream::UpstreamSettings> read_upstreams(const TableReader& root, const ReadContext& context) {
  std::vector<upstream::UpstreamSettings> upstreams;
  std::set<std::string> taken;
  for (const auto& table : root.tables("upstream", schema::kUpstream)) {
    upstream::UpstreamSettings upstream;
    upstream.name = read_name(table, taken);
    read_servers(table, context, upstream);
    upstream.queue = static_cast<std::size_t>(table.whole("queue"));
    upstream.max_wait = table.duration("max_wait");
    read_balance(table, context, upstream);
    upstream.host = read_host(table);
    upstream.timeouts = read_timeouts(table);
    upstream.ejection = read_ejection(table);
    upstream.proxy_protocol = table.boolean("proxy_protocol");
    read_protocol(table, upstream);
    read_tls(table, context, upstream);
    upstream.health = read_health(table, upstream.protocol);
    upstream.retry = read_retry(table);
    read_resolve(table, upstream);
    // weir keeps no idle connections to servers that get a PROXY header. The header contains the address of
    // one client, so the connection can be used for this client only.
    upstream.max_idle = upstream.proxy_protocol ? 0 : static_cast<std::size_t>(table.whole("max_idle"));
    if (!upstream.servers.empty() && upstream.servers.front().is_service)
      upstream.service = upstream.servers.front();
    context.lines["upstream " + in_quotes(upstream.name)] = table.line();
    upstreams.push_back(std::move(upstream));
  }
  return upstreams;
}

}  // namespace weir::config
