// [[upstream]].
#include "app/settings_sections.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace weir::app {

namespace {

std::optional<base::Endpoint> connectable(const TableReader& table, std::string_view key,
                                          std::optional<base::Endpoint> address) {
  if (address && !address->is_unix() && address->port == 0)
    table.mistake(
        key, "found " + in_quotes(address->to_string()) + "; expected a port from 1 to 65535 to connect to");
  return address;
}

std::optional<limit::TokenBucket> read_limit(const TableReader& server) {
  const auto rate = server.rate("limit");
  if (!rate) return std::nullopt;
  auto bucket = limit::TokenBucket::make(*rate, rate->count);
  if (bucket) return *bucket;
  server.mistake("limit", bucket.error().message);
  return std::nullopt;
}

void read_server_of(const TableReader& upstream, const Node& node, std::size_t position,
                    std::vector<upstream::ServerSettings>& servers) {
  upstream::ServerSettings server;
  std::optional<base::Endpoint> address;
  if (const auto* text = node.text()) {
    auto parsed = base::parse_endpoint(*text);
    if (!parsed) return upstream.mistake("servers", parsed.error().message);
    address = connectable(upstream, "servers", *parsed);
  } else if (node.table() != nullptr) {
    const TableReader table(&node, node.line, upstream.path() + ".servers" + element_label("", position),
                            schema::kServerOfUpstream, upstream.place());
    address = connectable(table, "address", table.address("address"));
    server.weight = static_cast<std::uint32_t>(table.whole("weight"));
    server.limit = read_limit(table);
    server.max_in_flight = static_cast<std::uint32_t>(table.whole("max_in_flight"));
  } else if (!std::holds_alternative<Unreadable>(node.value)) {
    upstream.mistake("servers", "found a list with " + std::string(type_name(node)) +
                                    " in it; expected addresses such as \"127.0.0.1:9000\"");
  }
  if (!address) return;
  server.address = std::move(*address);
  servers.push_back(std::move(server));
}

void read_servers(const TableReader& table, std::vector<upstream::ServerSettings>& servers) {
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
  for (std::size_t i = 0; i < array->size(); ++i) read_server_of(table, (*array)[i], i, servers);
}

upstream::Ejection read_ejection(const TableReader& upstream) {
  const auto table = upstream.table("eject", schema::kEject);
  upstream::Ejection ejection{.failures = static_cast<unsigned>(table.whole("failures")),
                              .least = table.deadline("least"),
                              .most = table.deadline("most"),
                              .slow_start = upstream.duration("slow_start")};
  if (ejection.most < ejection.least)
    table.mistake("most", "found less than least; expected a time that is no shorter");
  return ejection;
}

std::vector<policy::StatusRange> read_statuses(const TableReader& table) {
  const auto texts = table.texts("status");
  if (texts.empty()) table.mistake("status", "found none; expected at least one status such as \"200\"");
  std::vector<policy::StatusRange> statuses;
  for (const auto& text : texts) {
    const auto range = policy::parse_statuses(text);
    if (range)
      statuses.push_back(*range);
    else
      table.mistake("status", range.error().message);
  }
  return statuses;
}

std::optional<upstream::HealthCheck> read_health(const TableReader& upstream) {
  if (!upstream.has("health")) return std::nullopt;
  const auto table = upstream.table("health", schema::kHealth);
  upstream::HealthCheck check{.path = table.text("path"),
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

// "20%", and "0%" for none.
unsigned read_budget(const TableReader& table) {
  const auto text = table.text("budget");
  unsigned percent = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (parsed.ec != std::errc{} || std::string_view(parsed.ptr) != "%" || percent > 100)
    table.mistake("budget", "found " + in_quotes(text) + "; expected a share from \"0%\" to \"100%\"");
  return percent;
}

upstream::Retry read_retry(const TableReader& upstream) {
  const auto table = upstream.table("retry", schema::kRetry);
  upstream::Retry retry{.attempts = static_cast<unsigned>(table.whole("attempts")),
                        .budget = read_budget(table),
                        .backoff = table.duration("backoff")};
  auto on = table.texts("on");
  retry.broken = std::erase(on, "broken") != 0;
  retry.late = std::erase(on, "late") != 0;
  for (const auto& word : on) {
    const auto range = policy::parse_statuses(word);
    if (range)
      retry.statuses.push_back(*range);
    else
      table.mistake("on", "found " + in_quotes(word) +
                              "; expected \"broken\", \"late\", or a status such as \"503\" or \"5xx\"");
  }
  return retry;
}

upstream::Timeouts read_timeouts(const TableReader& upstream) {
  const auto table = upstream.table("timeouts", schema::kTimeouts);
  upstream::Timeouts timeouts{.connect = table.deadline("connect"),
                              .response = table.deadline("response"),
                              .idle = table.deadline("idle")};
  if (table.has("total")) timeouts.total = table.deadline("total");
  return timeouts;
}

std::string read_name(const TableReader& table, std::set<std::string>& taken) {
  auto name = table.text("name");
  if (table.has("name") && !is_plain_name(name))
    table.mistake(
        "name", "found " + in_quotes(name) + "; expected 1 to 128 printable ASCII characters but \" and \\");
  else if (table.has("name") && !taken.insert(name).second)
    table.mistake("name", "found " + in_quotes(name) + " a second time; expected a name of its own");
  return name;
}

void read_balance(const TableReader& table, const Reading& reading, upstream::UpstreamSettings& upstream) {
  upstream.balance = table.choice<upstream::Balance>("balance");
  if (!table.has("hash_key")) {
    upstream.hash_key = {*policy::parse_key_part("api_key|ip")};
    return;
  }
  upstream.hash_key = read_key(table, "hash_key", reading);
  if (upstream.balance != upstream::Balance::Hash)
    table.mistake("hash_key", "only of balance = \"hash\"");
  else if (upstream.hash_key.empty() && table.texts("hash_key").empty())
    table.mistake("hash_key", "found none; expected at least one attribute such as \"api_key|ip\"");
}

}  // namespace

std::vector<upstream::UpstreamSettings> read_upstreams(const TableReader& root, const Reading& reading) {
  std::vector<upstream::UpstreamSettings> upstreams;
  std::set<std::string> taken;
  for (const auto& table : root.tables("upstream", schema::kUpstream)) {
    upstream::UpstreamSettings upstream;
    upstream.name = read_name(table, taken);
    read_servers(table, upstream.servers);
    read_balance(table, reading, upstream);
    upstream.timeouts = read_timeouts(table);
    upstream.ejection = read_ejection(table);
    upstream.health = read_health(table);
    upstream.retry = read_retry(table);
    upstream.proxy_protocol = table.boolean("proxy_protocol");
    // What it says of one client would be taken for the next one's.
    upstream.max_idle = upstream.proxy_protocol ? 0 : static_cast<std::size_t>(table.whole("max_idle"));
    upstreams.push_back(std::move(upstream));
  }
  return upstreams;
}

}  // namespace weir::app
