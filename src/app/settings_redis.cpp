// [state.redis].
#include "app/settings_sections.hpp"

#include "weir/base/units.hpp"

namespace weir::app {

namespace {

void read_sentinels(const TableReader& table, redis::SentinelSettings& sentinel) {
  if (!table.has("sentinels")) table.missing("sentinels", "a list of addresses such as \"10.0.0.1:26379\"");
  if (!table.has("master")) table.missing("master", "the name that the Sentinels have for it");
  for (const auto& text : table.texts("sentinels")) {
    auto address = base::parse_endpoint(text);
    if (!address)
      table.mistake("sentinels", address.error().message);
    else if (address->is_unix() || address->port == 0)
      table.mistake("sentinels", "found " + in_quotes(text) + "; expected \"host:port\"");
    else
      sentinel.addresses.push_back(*std::move(address));
  }
  if (table.has("sentinels") && table.texts("sentinels").empty())
    table.mistake("sentinels", "found none; expected at least one");
  sentinel.master = table.text("master");
  sentinel.user = table.text("sentinel_user");
  sentinel.password = table.text("sentinel_password");
  if (!sentinel.user.empty() && sentinel.password.empty())
    table.missing("sentinel_password", "that of sentinel_user");
}

void read_topology(const TableReader& table, redis::RedisSettings& redis) {
  constexpr const char* kSentinelKeys[] = {"sentinels", "master", "sentinel_user", "sentinel_password"};
  redis.topology = table.choice<redis::Topology>("topology");
  if (redis.topology == redis::Topology::Sentinel) {
    if (redis.address.is_unix())
      table.mistake("url", "found a unix socket; expected redis://, for Sentinels tell of hosts and ports");
    return read_sentinels(table, redis.sentinel);
  }
  for (const char* key : kSentinelKeys)
    if (table.has(key)) table.mistake(key, "found without topology = \"sentinel\", which it is for");
}

}  // namespace

redis::RedisSettings read_redis(const TableReader& table) {
  if (!table.has("url")) return redis::RedisSettings{};  // noted as missing already
  const auto url = table.text("url");
  if (url.starts_with("rediss://")) {
    table.mistake("url", not_yet("TLS to Redis"));
    return redis::RedisSettings{};
  }
  auto parsed = redis::parse_redis_url(url);
  if (!parsed) {
    table.mistake("url", parsed.error().message);
    return redis::RedisSettings{};
  }
  auto redis = std::move(*parsed);
  redis.timeout = table.deadline("timeout");
  redis.start_wait = table.duration("start_wait");
  redis.lease_time = table.duration("lease_time");
  if (redis.lease_time < std::chrono::seconds(1) || redis.lease_time > std::chrono::hours(1))
    table.mistake("lease_time", "found " + base::to_string(redis.lease_time) +
                                    "; expected 1s to 1h, renewed thrice as often");
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
  return redis;
}

}  // namespace weir::app
