// The settings of the Redis server or cluster in which weir keeps the state of rules with store = "redis".
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

enum class Topology : std::uint8_t {
  Standalone,  // one server, at `address`
  Sentinel,    // the current master, as the Sentinels report it; `address` is not used
  Cluster,     // several masters, each with some of the keys; `address` is not used
};

// TLS settings for connections to Redis and to Sentinels. The files are PEM. weir reads a file again after
// the file has changed.
struct TlsSettings {
  std::string ca;    // certificates of trusted authorities; empty: the system's authorities
  std::string cert;  // weir's own certificate, followed by its chain; empty: no client certificate
  std::string key;   // private key of `cert`
  // The name that the server's certificate must have. weir also sends this name as SNI. Empty: the host of
  // the address.
  std::string server_name;
  bool verify = true;  // false: weir accepts any certificate
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// The Sentinels, which report the master's address.
struct SentinelSettings {
  std::vector<base::Endpoint> addresses;
  std::string master;    // the name under which the Sentinels know the master
  std::string user;      // ACL user for connections to Sentinels; empty: the default user
  std::string password;  // password for connections to Sentinels; empty: weir sends no AUTH
  bool tls = false;      // true: connections to Sentinels use TLS, with the master's TLS settings
  friend bool operator==(const SentinelSettings&, const SentinelSettings&) = default;
};

struct RedisSettings {
  base::Endpoint address;
  Topology topology = Topology::Standalone;
  SentinelSettings sentinel{};
  std::vector<base::Endpoint> nodes{};  // cluster nodes that weir asks first for the map of slots
  std::optional<TlsSettings> tls{};     // absent: connections without TLS
  std::string user;                     // ACL user; empty: the default user
  std::string password;                 // empty: weir sends no AUTH
  int database = 0;
  base::Duration timeout{20'000};  // the longest wait for the decision on one request
  // The longest time that a starting weir waits for Redis before it accepts requests.
  base::Duration start_wait{1'000'000};
  std::string prefix = "weir";  // the first part of every key's name
  // Time after which the concurrency permits of a crashed weir expire.
  base::Duration lease_time{10'000'000};
  // The time after which prefetched units (SharedGrants) that no request has used are given back to Redis.
  base::Duration lease_return{1'000'000};
  std::size_t lease_keys = 4096;  // the most keys for which weir holds prefetched units
  friend bool operator==(const RedisSettings&, const RedisSettings&) = default;
};

// Returns how long a command may stay unanswered before weir replaces the connection: a third of
// `lease_time`, but at least `timeout`. weir renews concurrency permits three times in `lease_time`. So even
// if one renewal is lost, the new connection renews the permits before they expire. A shorter time than
// `timeout` would end the connection while a decision still waits for a slow reply.
[[nodiscard]] base::Duration patience_of(const RedisSettings& settings) noexcept;

// Parses "redis://[user:password@]host[:port][/database]", the same form with rediss:// for TLS, or
// "unix://[user:password@]/path[?db=N]". User and password are percent-decoded. A password may contain any
// reserved character, but '%' must be encoded. Errors never contain `url`, because `url` may contain a
// password.
[[nodiscard]] base::Result<RedisSettings> parse_redis_url(std::string_view url);

// Returns what is wrong with the files that the settings name; nullopt if all files can be used.
[[nodiscard]] std::optional<base::Error> fault_of(const TlsSettings& settings);

}  // namespace weir::redis
