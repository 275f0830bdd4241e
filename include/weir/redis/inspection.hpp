// What a Redis says of itself, and whether weir could keep its state there: for `weir redis-check`.
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

// What its INFO tells. Empty or absent: it does not say, or we may not ask.
struct ServerFacts {
  std::string product;  // "Redis" or "Valkey"
  std::string version;
  std::string role;                         // "master" or "slave"
  std::string eviction;                     // maxmemory-policy
  std::optional<std::uint64_t> max_memory;  // bytes; 0: no bound
  std::optional<std::uint64_t> used_memory;
  std::optional<unsigned> replicas{};  // of a master: those that are connected
  bool in_cluster = false;
};
[[nodiscard]] ServerFacts read_info(std::string_view info);

// At least Redis 6.2, or any Valkey, whose first was of Redis 7.2's kind. An unreadable version is not.
[[nodiscard]] bool is_recent(const ServerFacts& facts) noexcept;

struct RoundTrips {
  base::Duration median, worst;
  unsigned count;
};

struct ClockDifference {
  base::Duration ahead;  // of Redis's clock before this host's; negative: behind
  base::Duration error;  // at most: half of the shortest round trip that measured it
};

struct Inspection {
  base::Endpoint address;   // what was inspected
  std::string unreachable;  // why there is nothing else; empty where it answers
  ServerFacts facts;
  std::optional<RoundTrips> round_trips;
  std::optional<ClockDifference> clock;
  std::vector<std::string> obstacles;  // to what weir does there: "EVALSHA: NOPERM …"
  std::vector<std::string> denied;     // what only an inspection asks, and could not learn
  // Of a cluster as this node sees it: how many slots nobody serves, and its other masters, whose obstacles
  // are denied commands alone.
  std::size_t unserved = 0;
  std::vector<Inspection> others{};
  std::optional<SecretLook> secret{};  // where it was asked for
};

// Connects, signs in and asks, as weir would, with what it would: charges and gives back under a key of its
// own, which expires within a second. `shares_secret`: looks as well at what stands where weirs keep the
// secret that they share. Blocks for some seconds at most.
[[nodiscard]] Inspection inspect(const RedisSettings& settings, bool shares_secret);

}  // namespace weir::redis
