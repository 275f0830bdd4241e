// Inspects a Redis server for `weir redis-check`: reads what the server reports about itself, and tests
// whether weir could keep its state in this server.
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

// Fields of the server's INFO reply. A field is empty or absent if the server does not report the field, or
// answers INFO with an error.
struct ServerFacts {
  std::string product;  // "Redis" or "Valkey"
  std::string version;
  std::string role;                         // "master" or "slave"
  std::string eviction;                     // maxmemory-policy
  std::optional<std::uint64_t> max_memory;  // maxmemory in bytes; 0: no limit
  std::optional<std::uint64_t> used_memory;
  std::optional<unsigned> replicas{};  // number of connected replicas; absent if this server is a replica
  bool in_cluster = false;
};
[[nodiscard]] ServerFacts read_info(std::string_view info);

// Returns true for Redis 6.2 or later, and for every version of Valkey, because the first Valkey corresponds
// to Redis 7.2. Returns false if the version cannot be parsed.
[[nodiscard]] bool is_recent(const ServerFacts& facts) noexcept;

struct RoundTrips {
  base::Duration median, worst;
  unsigned count;
};

struct ClockDifference {
  base::Duration ahead;  // Redis's clock minus this host's clock
  base::Duration error;  // the largest possible error of `ahead`: half of the shortest round trip
};

struct Inspection {
  base::Endpoint address;   // the inspected server
  std::string unreachable;  // why the server did not answer; empty if the server answered
  ServerFacts facts;
  std::optional<RoundTrips> round_trips;
  std::optional<ClockDifference> clock;
  // Errors of the commands that weir needs and this server does not run: "EVALSHA: NOPERM …"
  std::vector<std::string> obstacles;
  // Commands that only `weir redis-check` sends, and that the server answered with an error: "INFO: NOPERM …"
  std::vector<std::string> denied;
  // The number of cluster slots that have no node, according to this node.
  std::size_t unserved = 0;
  // The inspections of the cluster's other masters. Their `obstacles` contain only NOPERM errors of rarely
  // used commands. The test charges and refunds are made once for the whole cluster. Their errors are in the
  // `obstacles` of this inspection.
  std::vector<Inspection> others{};
  // The value that Redis has under the name of the shared secret. Set if inspect() was called with
  // `shares_secret`.
  std::optional<SecretState> secret{};
};

// Connects and signs in as weir does, then runs weir's commands: charges and refunds a test key, which
// expires within a second. If `shares_secret` is true, also reads the Redis key of the shared secret. Blocks
// for a few seconds at most. Throws std::runtime_error if the system provides no event loop or no random
// numbers.
[[nodiscard]] Inspection inspect(const RedisSettings& settings, bool shares_secret);

}  // namespace weir::redis
