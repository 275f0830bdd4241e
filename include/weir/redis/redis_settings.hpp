// What the configuration says of the Redis that rules share their state in.
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
  Sentinel,    // the master of the moment, which Sentinels know; `address` is not used
  Cluster,     // several masters, each with a share of the keys; `address` is not used
};

// How TLS is spoken to whoever it is spoken to. Files are PEM, and read anew when they change.
struct TlsSettings {
  std::string ca;           // who signs servers' certificates; empty: whom the system trusts
  std::string cert;         // our own certificate, then its chain; empty: none
  std::string key;          // of `cert`
  std::string server_name;  // what servers' certificates are for, and are told; empty: the host connected to
  bool verify = true;       // false: any certificate will do
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// Who knows where the master is.
struct SentinelSettings {
  std::vector<base::Endpoint> addresses;
  std::string master;    // what they call it
  std::string user;      // of the Sentinels, as below
  std::string password;  // of the Sentinels
  bool tls = false;      // is spoken to them too, as to the master
  friend bool operator==(const SentinelSettings&, const SentinelSettings&) = default;
};

struct RedisSettings {
  base::Endpoint address;
  Topology topology = Topology::Standalone;
  SentinelSettings sentinel{};
  std::vector<base::Endpoint> nodes{};  // of a cluster: whom to ask first who keeps what
  std::optional<TlsSettings> tls{};     // absent: plain
  std::string user;                     // ACL user; empty: the default user
  std::string password;                 // empty: no AUTH
  int database = 0;
  base::Duration timeout{20'000};          // the longest that one decision waits
  base::Duration start_wait{1'000'000};    // how long a starting weir waits for it before it takes requests
  std::string prefix = "weir";             // of every key
  base::Duration lease_time{10'000'000};   // after which what a weir that died held of concurrency comes free
  base::Duration lease_return{1'000'000};  // after which units that nobody asks for go back (UnitLeases)
  std::size_t lease_keys = 4096;           // of which units are taken at once
  friend bool operator==(const RedisSettings&, const RedisSettings&) = default;
};

// How long a connection may leave anything unanswered before it is given up for another one. What is held is
// renewed three times a lease, so that a renewal that was swallowed is made up for before the lease ends; but
// a slow answer that a decision would still wait for ends no connection.
[[nodiscard]] base::Duration patience_of(const RedisSettings& settings) noexcept;

// "redis://[user:password@]host[:port][/database]", the same with rediss:// for TLS, or
// "unix://[user:password@]/path[?db=N]". Percent-encoding in user and password is decoded; of the characters
// that a URL reserves, '%' alone has to be encoded in a password. An error never repeats the text.
[[nodiscard]] base::Result<RedisSettings> parse_redis_url(std::string_view url);

// What is wrong with the files that the settings name; nullopt for nothing.
[[nodiscard]] std::optional<base::Error> fault_of(const TlsSettings& settings);

}  // namespace weir::redis
