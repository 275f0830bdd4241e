// The settings of an upstream, which is a group of servers.
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

// The protocol that weir speaks to servers. With Auto, the server chooses by ALPN (RFC 7301).
enum class Protocol : std::uint8_t { Http1, H2, H2c, Auto };

enum class Balance : std::uint8_t { RoundRobin, LeastInFlight, RandomTwo, Hash };

struct Timeouts {
  base::Duration connect{1'000'000};
  // time limit for connecting, over all attempts and servers of one request
  base::Duration connect_total{5'000'000};
  // Time limit from the end of the request to the head of the answer, and between two reads of the answer.
  base::Duration response{30'000'000};
  // If the client waits for 100 Continue (RFC 9110 §10.1.1): time limit from sending the head to the server's
  // 100 Continue. After this time weir itself sends 100 Continue to the client. weir never does this if
  // `expect_continue` is at least as long as `response` or `total`.
  base::Duration expect_continue{1'000'000};
  base::Duration idle{60'000'000};     // how long an unused connection stays open
  base::Duration tunnel{300'000'000};  // how long an upgraded connection may be silent in both directions
  // How long weir reads an answer after its client has left; 0: weir stops reading at once.
  base::Duration abandoned{30'000'000};
  // Time limit from the first attempt to the head of the last answer. The time in which the client sends its
  // body is not included.
  base::Duration total{base::kForever};
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

// Settings of the ejection of failing servers.
struct Ejection {
  // Number of failed requests in a row that ejects a server; one failed connect is enough.
  unsigned failures = 3;
  base::Duration least{1'000'000};  // length of the first ejection; doubles each time
  // Longest ejection; after this time without a failure, `least` applies again.
  base::Duration most{30'000'000};
  // Time after a readmission until the server gets its full share of the requests.
  base::Duration slow_start{5'000'000};
  friend bool operator==(const Ejection&, const Ejection&) = default;
};

// Settings of the probes of servers.
struct HealthCheck {
  std::string path;  // path of a GET request; empty if `grpc` is set
  // The service to ask about by gRPC. An empty text: the whole server. Nullopt: weir does not use gRPC.
  std::optional<std::string> grpc{};
  base::Duration interval{2'000'000};
  base::Duration timeout{1'000'000};
  unsigned unhealthy_after = 3;                 // this number of failed probes in a row takes the server down
  unsigned healthy_after = 2;                   // this number of good probes in a row readmits the server
  std::vector<policy::StatusRange> statuses{};  // a good answer has one of these statuses
  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

// The requests that weir sends again after a failure. The method must be idempotent (RFC 9110 §9.2.2), and
// all of the body that has arrived must still be in memory. If no connection could be opened, no server has
// received the request, so another attempt does not count as a repetition.
struct Retry {
  unsigned attempts = 2;  // largest number of servers that get the request, including the first
  // Largest number of repetitions, in percent of all requests (RetryBudget); 0: no repetitions.
  unsigned budget = 20;
  base::Duration backoff{25'000};  // upper bound of the wait before the first repetition
  bool broken = true;  // repeat if the connection ended before the answer's head, or the answer is no HTTP
  bool late = true;    // repeat if the answer is late
  std::vector<policy::StatusRange> statuses{};  // repeat if the answer has one of these statuses
  friend bool operator==(const Retry&, const Retry&) = default;
};

inline constexpr std::uint32_t kMaxWeight = 100;  // the largest weight in the configuration
// The weight of the servers whose SRV records have the largest weight, and the largest weight that can be set
// while weir runs. A common multiple of small numbers, so that usual proportions stay exact.
inline constexpr std::uint32_t kFullServiceWeight = 240;

struct ServerSettings {
  base::Endpoint address{};                   // for a service: the service's name as the host, and no port
  std::uint32_t weight = 1;                   // 1 to kMaxWeight; for targets of a service up to 240
  std::uint32_t max_in_flight = 0;            // for all workers together; 0: unlimited
  std::optional<limit::TokenBucket> limit{};  // rate of the server's requests, for all workers together
  bool tls = false;                           // true: connect with TLS
  std::string tls_name{};  // name that the server's certificate must contain: a host name or an IP address
  // Requests go only to the servers in service that have the smallest priority number.
  std::uint16_t priority = 0;
  bool is_service = false;  // the SRV records of `address.host` name the servers (upstream/services.hpp)
  // Returns the name for logs and metrics: the address, or "srv:NAME".
  [[nodiscard]] std::string name() const { return is_service ? "srv:" + address.host : address.to_string(); }
  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

// The largest number of servers of an upstream, because 64 bits record which servers a request has tried.
inline constexpr std::size_t kMaxServers = 64;

struct UpstreamSettings {
  std::string name;
  std::vector<ServerSettings> servers;  // at least one server, at most kMaxServers
  // The service as configured, if its SRV records name the servers. `servers` then has the targets, or the
  // service itself while no target is known.
  std::optional<ServerSettings> service{};
  Balance balance = Balance::LeastInFlight;
  policy::KeyPattern hash_key;  // for Balance::Hash: requests with the same value go to the same server
  Timeouts timeouts;
  Ejection ejection;
  std::optional<HealthCheck> health;
  net::TlsClientSettings tls{};  // used for the servers that have `tls`
  Retry retry;
  Protocol protocol = Protocol::Http1;
  std::string host{};               // Host of the requests to servers; empty: the client's
  std::uint32_t max_streams = 100;  // requests that share one HTTP/2 connection, at least 1
  bool proxy_protocol = false;      // true: each connection begins with a PROXY header and serves one request
  std::size_t queue = 256;  // largest number of waiting requests, for all workers together; 0: no waiting
  base::Duration max_wait{1'000'000};  // longest wait for a server with room
  std::size_t max_idle = 16'384;       // largest number of unused connections for each server and worker
  // Longest time between two look-ups of a server's name; 0: only at start. A name with a shorter TTL is
  // looked up sooner.
  base::Duration resolve{30'000'000};
  base::Duration resolve_least{1'000'000};  // shortest time between two look-ups, whatever the TTL
  friend bool operator==(const UpstreamSettings&, const UpstreamSettings&) = default;
};

}  // namespace weir::upstream
