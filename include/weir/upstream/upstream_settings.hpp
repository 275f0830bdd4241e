// The settings of a group of servers.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/tls_client.hpp"
#include "weir/policy/rule.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::upstream {

enum class Balance : std::uint8_t { RoundRobin, LeastInFlight, RandomTwo, Hash };

struct Timeouts {
  base::Duration connect{1'000'000};
  base::Duration connect_total{5'000'000};  // all connects of one request, at all servers together
  base::Duration response{30'000'000};  // from the end of the request to the head of the answer, and between
                                        // two reads of the answer
  // From sending the head to the server's 100 Continue, if the client waits for a 100 Continue (RFC 9110
  // §10.1.1). When this time is over, weir asks the client for the body. weir never asks if `expect_continue`
  // is at least as long as `response` or `total`.
  base::Duration expect_continue{1'000'000};
  base::Duration idle{60'000'000};       // how long an unused connection is kept
  base::Duration tunnel{300'000'000};    // how long an upgraded connection may be silent in both directions
  base::Duration abandoned{30'000'000};  // to read an answer after its client has left; 0: not read
  base::Duration total{base::kForever};  // from the first attempt to the head of the last answer, without
                                         // the time in which the client sends its body
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

// When failing servers are ejected, and for how long.
struct Ejection {
  unsigned failures = 3;            // failed requests in a row; one failed connect is enough
  base::Duration least{1'000'000};  // of the first ejection; doubles each time
  base::Duration most{30'000'000};  // upper bound; after this time without a failure, `least` applies again
  base::Duration slow_start{5'000'000};  // until a readmitted server has its full share
  friend bool operator==(const Ejection&, const Ejection&) = default;
};

// Active probes of servers, and how they are judged.
struct HealthCheck {
  std::string path;
  base::Duration interval{2'000'000};
  base::Duration timeout{1'000'000};
  unsigned unhealthy_after = 3;                 // failed probes in a row
  unsigned healthy_after = 2;                   // good answers in a row
  std::vector<policy::StatusRange> statuses{};  // of a good answer
  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

// Which requests are sent again. They must be idempotent by RFC 9110 §9.2.2, and weir must have received
// either the whole body together with the head, or nothing of the body. A request for which no connection
// could be opened was sent to no server, so another attempt is not counted as a repetition.
struct Retry {
  unsigned attempts = 2;           // most servers that get the request, including the first
  unsigned budget = 20;            // percent of all requests; 0: no request is sent again
  base::Duration backoff{25'000};  // upper bound of the wait before the first repetition
  bool broken = true;  // if the connection ended before the answer's head, or the answer is no HTTP
  bool late = true;    // if the answer is late
  std::vector<policy::StatusRange> statuses{};  // if the answer has such a status
  friend bool operator==(const Retry&, const Retry&) = default;
};

inline constexpr std::uint32_t kMaxWeight = 100;

struct ServerSettings {
  base::Endpoint address{};
  std::uint32_t weight = 1;                   // 1 to kMaxWeight
  std::uint32_t max_in_flight = 0;            // of all workers together; 0: unlimited
  std::optional<limit::TokenBucket> limit{};  // rate of its requests, of all workers together
  bool tls = false;                           // use TLS
  std::string tls_name{};  // name that its certificate must have: a host name or an IP address
  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

// The most servers of an upstream: 64 bits record which of them a request has tried.
inline constexpr std::size_t kMaxServers = 64;

struct UpstreamSettings {
  std::string name;
  std::vector<ServerSettings> servers;  // at least one, at most kMaxServers
  Balance balance = Balance::LeastInFlight;
  policy::KeyPattern hash_key;  // for Balance::Hash: requests with the same value go to the same server
  Timeouts timeouts;
  Ejection ejection;
  std::optional<HealthCheck> health;
  net::TlsClientSettings tls{};  // for servers with TLS
  Retry retry;
  bool proxy_protocol = false;  // connections begin with a PROXY header and serve one request each
  std::size_t queue = 256;      // most waiting requests, of all workers together; 0: requests do not wait
  base::Duration max_wait{1'000'000};  // longest wait for room
  std::size_t max_idle = 256;          // most unused connections for each server and worker
  base::Duration resolve{30'000'000};  // time between two look-ups of servers' names; 0: only at start
  friend bool operator==(const UpstreamSettings&, const UpstreamSettings&) = default;
};

}  // namespace weir::upstream
