// What the configuration says of a group of servers.
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
  base::Duration connect_total{5'000'000};  // of a request, at all servers together
  base::Duration response{
      30'000'000};  // from the whole request sent to the head of the answer, and between two reads of it
  // From the head sent to the server's word, where the client waits for that (RFC 9110 §10.1.1); then weir
  // says it. `response` or `total`, or longer: it never does.
  base::Duration expect_continue{1'000'000};
  base::Duration idle{60'000'000};     // how long an unused connection is kept
  base::Duration tunnel{300'000'000};  // of a connection that changed its protocol, without a byte either way
  base::Duration abandoned{30'000'000};  // how long an answer is read on whose client has left; 0: not at all
  base::Duration total{base::kForever};  // from the first attempt to the head of the last one's answer, less
                                         // the time in which the client sends its body
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

// When servers that fail are left out, and for how long.
struct Ejection {
  unsigned failures = 3;            // in a row, of requests; a connect that fails is enough by itself
  base::Duration least{1'000'000};  // the first time; twice as long each next time
  base::Duration most{30'000'000};  // at most; and so long without a failure makes it the first time again
  base::Duration slow_start{5'000'000};  // how long one that is back takes to have its full share
  friend bool operator==(const Ejection&, const Ejection&) = default;
};

// Whether servers are asked how they are, and what tells.
struct HealthCheck {
  std::string path;
  base::Duration interval{2'000'000};
  base::Duration timeout{1'000'000};
  unsigned unhealthy_after = 3;                 // faults in a row
  unsigned healthy_after = 2;                   // good answers in a row
  std::vector<policy::StatusRange> statuses{};  // of a good answer
  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

// Which requests are sent again, of those that RFC 9110 §9.2.2 calls idempotent and whose body came whole
// with its head, or has not begun to come. One that no server could be connected for was sent to none, and is
// no repetition.
struct Retry {
  unsigned attempts = 2;           // servers that get it at most, the first among them
  unsigned budget = 20;            // percent of all requests; 0: none is sent again
  base::Duration backoff{25'000};  // the longest wait before the first repetition
  bool broken = true;              // where the connection ended before the answer's head, or it is no HTTP
  bool late = true;                // where the answer does not come in time
  std::vector<policy::StatusRange> statuses{};  // where the answer has such a status
  friend bool operator==(const Retry&, const Retry&) = default;
};

inline constexpr std::uint32_t kMaxWeight = 100;

struct ServerSettings {
  base::Endpoint address{};
  std::uint32_t weight = 1;                   // 1 to kMaxWeight
  std::uint32_t max_in_flight = 0;            // of all workers together; 0: any
  std::optional<limit::TokenBucket> limit{};  // requests that it gets, likewise
  bool tls = false;                           // it speaks TLS
  std::string tls_name{};                     // whose certificate it has to have: a host name, or an address
  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

// Of one upstream: which of them a request has tried is kept in 64 bits.
inline constexpr std::size_t kMaxServers = 64;

struct UpstreamSettings {
  std::string name;
  std::vector<ServerSettings> servers;  // at least one, at most kMaxServers
  Balance balance = Balance::LeastInFlight;
  policy::KeyPattern hash_key;  // of Balance::Hash: what stays on its server
  Timeouts timeouts;
  Ejection ejection;
  std::optional<HealthCheck> health;
  net::TlsClientSettings tls{};  // towards servers that speak it
  Retry retry;
  bool proxy_protocol = false;         // a connection begins with who is asking, and serves one request
  std::size_t queue = 256;             // requests of all workers that wait for room; 0: none waits
  base::Duration max_wait{1'000'000};  // for room
  std::size_t max_idle = 256;          // unused connections kept per server and worker
  base::Duration resolve{30'000'000};  // between two look-ups of servers' names; 0: only at start
  friend bool operator==(const UpstreamSettings&, const UpstreamSettings&) = default;
};

}  // namespace weir::upstream
