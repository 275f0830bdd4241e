// What the configuration says of the Redis that rules share their state in.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

enum class Topology : std::uint8_t {
  Standalone,  // one server, at `address`
  Sentinel,    // the master of the moment, which Sentinels know; `address` is not used
};

// Who knows where the master is.
struct SentinelSettings {
  std::vector<base::Endpoint> addresses;
  std::string master;    // what they call it
  std::string user;      // of the Sentinels, as below
  std::string password;  // of the Sentinels
};

struct RedisSettings {
  base::Endpoint address;
  Topology topology = Topology::Standalone;
  SentinelSettings sentinel{};
  std::string user;      // ACL user; empty: the default user
  std::string password;  // empty: no AUTH
  int database = 0;
  base::Duration timeout{20'000};          // the longest that one decision waits
  base::Duration start_wait{1'000'000};    // how long a starting weir waits for it before it takes requests
  std::string prefix = "weir";             // of every key
  base::Duration lease_time{10'000'000};   // after which what a weir that died held of concurrency comes free
  base::Duration lease_return{1'000'000};  // after which units that nobody asks for go back (UnitLeases)
  std::size_t lease_keys = 4096;           // of which units are taken at once
};

// "redis://[user:password@]host[:port][/database]" or "unix:///path[?db=N]". Percent-encoding in user and
// password is decoded.
[[nodiscard]] base::Result<RedisSettings> parse_redis_url(std::string_view url);

}  // namespace weir::redis
