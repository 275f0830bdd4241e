// What the configuration says of a group of servers.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::upstream {

enum class Balance : std::uint8_t { RoundRobin, LeastInFlight, RandomTwo };

struct Timeouts {
  base::Duration connect{1'000'000};
  base::Duration response{
      30'000'000};  // from the whole request sent to the head of the answer, and between two reads of it
  base::Duration idle{60'000'000};  // how long an unused connection is kept
};

// Of one upstream: which of them a request has tried is kept in 64 bits.
inline constexpr std::size_t kMaxServers = 64;

struct UpstreamSettings {
  std::string name;
  std::vector<base::Endpoint> servers;  // at least one, at most kMaxServers
  Balance balance = Balance::LeastInFlight;
  Timeouts timeouts;
  std::size_t max_idle = 256;  // unused connections kept per server and worker
};

}  // namespace weir::upstream
