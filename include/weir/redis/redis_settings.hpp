// The settings of the Redis in which rules share their state.
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
  Sentinel,    // the current master, as reported by Sentinels; `address` is not used
  Cluster,     // several masters, each with a part of the keys; `address` is not used
};

// TLS to Redis or to a Sentinel. Files are PEM and are read again when they change.
struct TlsSettings {
  std::string ca;           // authorities that sign servers' certificates; empty: the system's
  std::string cert;         // weir's own certificate, then its chain; empty: none
  std::string key;          // private key of `cert`
  std::string server_name;  // expected in certificates and sent as SNI; empty: the host of the address
  bool verify = true;       // false: any certificate is accepted
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// The Sentinels, which report the address of the master.
struct SentinelSettings {
  std::vector<base::Endpoint> addresses;
  std::string master;    // the master's name at the Sentinels
  std::string user;      // ACL user at the Sentinels; empty: the default user
  std::string password;  // at the Sentinels; empty: no AUTH
  bool tls = false;      // Sentinels are reached over TLS, with the master's TLS settings
  friend bool operator==(const SentinelSettings&, const SentinelSettings&) = default;
};

struct RedisSettings {
  base::Endpoint address;
  Topology topology = Topology::Standalone;
  SentinelSettings sentinel{};
  std::vector<base::Endpoint> nodes{};  // of a cluster: the nodes that weir asks first for the slot table
  std::optional<TlsSettings> tls{};     // absent: plain
  std::string user;                     // ACL user; empty: the default user
  std::string password;                 // empty: no AUTH
  int database = 0;
  base::Duration timeout{20'000};          // longest wait of one decision
  base::Duration start_wait{1'000'000};    // longest wait for Redis at start before weir accepts requests
  std::string prefix = "weir";             // of every key
  base::Duration lease_time{10'000'000};   // time until permits of a dead weir expire
  base::Duration lease_return{1'000'000};  // time until unused units go back to Redis (SharedGrants)
  std::size_t lease_keys = 4096;           // number of keys that weir may hold units of at once
  friend bool operator==(const RedisSettings&, const RedisSettings&) = default;
};

// Returns how long a connection may leave a command unanswered before weir replaces it. Permits are renewed
// three times in lease_time, so after a lost renewal the new connection can still renew them in time. The
// result is never below `timeout`, so a slow answer that a decision still waits for ends no connection.
[[nodiscard]] base::Duration patience_of(const RedisSettings& settings) noexcept;

// Parses "redis://[user:password@]host[:port][/database]", the same with rediss:// for TLS, or
// "unix://[user:password@]/path[?db=N]". User and password are percent-decoded. A password may
// contain any reserved character unencoded except '%'. An error never contains the text.
[[nodiscard]] base::Result<RedisSettings> parse_redis_url(std::string_view url);

// Returns what is wrong with the files that the settings name, or nullopt.
[[nodiscard]] std::optional<base::Error> fault_of(const TlsSettings& settings);

}  // namespace weir::redis
