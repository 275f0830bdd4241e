// Inspects a Redis server for `weir redis-check`: what the server reports, and whether weir could keep its
// state there.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/redis/redis_settings.hpp"
#include "weir/redis/shared_secret.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

// The fields of the INFO reply. A field is empty or absent if the server does not report it or denies INFO.
struct ServerFacts {
  std::string product;  // "Redis" or "Valkey"
  std::string version;
  std::string role;                         // "master" or "slave"
  std::string eviction;                     // maxmemory-policy
  std::optional<std::uint64_t> max_memory;  // bytes; 0: no bound
  std::optional<std::uint64_t> used_memory;
  std::optional<unsigned> replicas{};  // connected replicas, if this server is a master
  bool in_cluster = false;
};
[[nodiscard]] ServerFacts read_info(std::string_view info);

// Returns true for Redis 6.2 or later and for any Valkey, whose first version matches Redis 7.2. Returns
// false if the version is unreadable.
[[nodiscard]] bool is_recent(const ServerFacts& facts) noexcept;

struct RoundTrips {
  base::Duration median, worst;
  unsigned count;
};

struct ClockDifference {
  base::Duration ahead;  // distance of Redis's clock ahead of this host's; negative: behind
  base::Duration error;  // largest error of `ahead`: half of the shortest round trip that measured it
};

struct Inspection {
  base::Endpoint address;   // the inspected server
  std::string unreachable;  // why the server did not answer; empty if it did
  ServerFacts facts;
  std::optional<RoundTrips> round_trips;
  std::optional<ClockDifference> clock;
  std::vector<std::string> obstacles;  // commands of weir that fail there: "EVALSHA: NOPERM …"
  std::vector<std::string> denied;     // commands that only an inspection sends and that the server denied
  // `unserved`: the number of cluster slots without a node, as this node sees it. `others`: the other masters
  // of the cluster. The obstacles of another master are denied commands only.
  std::size_t unserved = 0;
  std::vector<Inspection> others{};
  std::optional<SecretLook> secret{};  // set if `shares_secret`
};

// Connects and signs in as weir does, then runs weir's commands: it charges and refunds under a key of its
// own. That key expires within a second. If `shares_secret`, inspects the key of the shared secret as well.
// Blocks for a few seconds at most.
[[nodiscard]] Inspection inspect(const RedisSettings& settings, bool shares_secret);

}  // namespace weir::redis
