// Reads [state.redis].
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"

namespace weir::config {

namespace {

// The message for an address that has more parts than "host:port". The message does not show the address,
// which may contain a password.
constexpr const char* kOnlyHostAndPort =
    "found an address with more than host and port; expected \"host:port\", and the password in url or "
    "password";

// Reads a list of "host:port" with at least one element.
std::vector<base::Endpoint> read_addresses(const TableReader& table, const char* key) {
  std::vector<base::Endpoint> addresses;
  if (!table.has(key))
    table.missing(key, "a list of addresses such as \"10.0.0.1:" +
                           std::string(key == std::string_view("nodes") ? "6379" : "26379") + "\"");
  const auto texts = table.texts(key);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto address = base::parse_endpoint(texts[i]);
    if (texts[i].find('@') != std::string::npos || texts[i].find("//") != std::string::npos)
      table.mistake_in(key, i, kOnlyHostAndPort);
    else if (!address)
      table.mistake_in(key, i, address.error().message);
    else if (address->is_unix() || address->port == 0)
      table.mistake_in(key, i, "found " + in_quotes(texts[i]) + "; expected \"host:port\"");
    else
      addresses.push_back(*std::move(address));
  }
  if (table.has(key) && texts.empty()) table.mistake(key, "found none; expected at least one");
  return addresses;
}

void read_sentinels(const TableReader& table, redis::SentinelSettings& sentinel) {
  sentinel.addresses = read_addresses(table, "sentinels");
  if (!table.has("master")) table.missing("master", "the name of the master at the Sentinels");
  sentinel.master = table.text("master");
  sentinel.user = table.text("sentinel_user");
  sentinel.password = table.text("sentinel_password");
  if (!sentinel.user.empty() && sentinel.password.empty())
    table.missing("sentinel_password", "the password of sentinel_user");
  sentinel.tls = table.boolean("sentinel_tls");
}

// Reads the TLS settings for Redis. Loads the files with OpenSSL, and reports mistakes in the files.
void read_tls(const TableReader& table, const ReadContext& context, redis::RedisSettings& redis) {
  for (const char* key : {"tls", "sentinel_tls"})
    if (table.has(key) && !redis.tls)
      table.mistake(key, "found without TLS; expected a rediss:// url, or remove this key");
  if (!redis.tls) return;
  const auto entry = table.table("tls", schema::kRedisTls);
  auto& tls = *redis.tls;
  tls.ca = readable_file(entry, "ca", context);
  tls.cert = readable_file(entry, "cert", context);
  tls.key = readable_file(entry, "key", context);
  tls.server_name = entry.text("server_name");
  tls.verify = entry.boolean("verify");
  if (tls.cert.empty() != tls.key.empty())
    return entry.missing(tls.cert.empty() ? "cert" : "key",
                         "a PEM file, because cert and key are needed together");
  if (is_unreadable(tls.ca) || is_unreadable(tls.cert) || is_unreadable(tls.key)) return;
  if (const auto fault = redis::fault_of(tls)) table.mistake("tls", fault->message);
}

void read_cluster(const TableReader& table, redis::RedisSettings& redis) {
  if (redis.database != 0)
    table.mistake("url", "found database " + std::to_string(redis.database) +
                             "; expected none, because a cluster has only database 0");
  redis.nodes = read_addresses(table, "nodes");
}

void read_topology(const TableReader& table, redis::RedisSettings& redis) {
  constexpr const char* kSentinelKeys[] = {"sentinels", "master", "sentinel_user", "sentinel_password",
                                           "sentinel_tls"};
  redis.topology = table.choice<redis::Topology>("topology");
  const bool sentinel = redis.topology == redis::Topology::Sentinel;
  const bool cluster = redis.topology == redis::Topology::Cluster;
  if ((sentinel || cluster) && redis.address.is_unix())
    table.mistake("url", std::string("found a unix socket; expected redis://, because ") +
                             (sentinel ? "Sentinels" : "nodes") + " report hosts and ports");
  if (sentinel) read_sentinels(table, redis.sentinel);
  if (cluster) read_cluster(table, redis);
  for (const char* key : kSentinelKeys)
    if (!sentinel && table.has(key))
      table.mistake(key, "found without topology = \"sentinel\"; add it, or remove this key");
  if (!cluster && table.has("nodes"))
    table.mistake("nodes", "found without topology = \"cluster\"; add it, or remove this key");
}

}  // namespace

// Reads `username` and `password`. They need no percent-encoding; a user and password in the URL do.
void read_user(const TableReader& table, redis::RedisSettings& redis) {
  const auto user = table.text("username");
  const auto password = table.text("password");
  if (user.empty() && password.empty()) return;
  if (!redis.password.empty())
    return table.mistake(password.empty() ? "username" : "password",
                         "found beside a user and password in url; expected one of the two");
  redis.user = user;
  redis.password = password;
  if (!redis.user.empty() && redis.password.empty()) table.missing("password", "the password of username");
}

redis::RedisSettings read_redis(const TableReader& table, const ReadContext& context) {
  // The missing key `url` was reported already.
  if (!table.has("url")) return redis::RedisSettings{};
  const auto url = table.text("url");
  auto parsed = redis::parse_redis_url(url);
  if (!parsed) {
    table.mistake("url", parsed.error().message);
    return redis::RedisSettings{};
  }
  auto redis = std::move(*parsed);
  read_user(table, redis);
  redis.timeout = table.deadline("timeout");
  redis.start_wait = table.duration("start_wait");
  redis.lease_time = table.duration("lease_time");
  if (redis.lease_time < std::chrono::seconds(1) || redis.lease_time > std::chrono::hours(1))
    table.mistake("lease_time", "found " + base::to_string(redis.lease_time) + "; expected 1s to 1h");
  redis.lease_return = table.duration("lease_return");
  if (redis.lease_return < std::chrono::milliseconds(100) || redis.lease_return > std::chrono::minutes(1))
    table.mistake("lease_return",
                  "found " + base::to_string(redis.lease_return) + "; expected 100ms to 1min");
  redis.lease_keys = static_cast<std::size_t>(table.whole("lease_keys"));
  redis.prefix = table.text("prefix");
  if (!is_plain_name(redis.prefix) || redis.prefix.find_first_of("{}") != std::string::npos)
    table.mistake("prefix", "found " + in_quotes(redis.prefix) +
                                "; expected 1 to 128 printable ASCII characters but \" \\ { and }");
  read_topology(table, redis);
  read_tls(table, context, redis);
  return redis;
}

}  // namespace weir::config
