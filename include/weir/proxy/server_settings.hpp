// Bounds and deadlines of the client side, and switches for the headers that weir adds.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/http/parameters.hpp"
#include "weir/proxy/min_rate.hpp"

#include <cstdint>
#include <vector>

namespace weir::proxy {

// The treatment of a request whose client half-closes its connection.
enum class HalfClose : std::uint8_t {
  Answer,  // weir still answers; the client counts as disconnected only once the connection breaks
  End,     // weir ends the request, as if the client had disconnected
};

struct ServerSettings {
  unsigned workers = 0;                        // 0: one per core
  base::Duration drain{30'000'000};            // how long a stopping weir waits for its requests to end
  base::Duration drain_delay{0};               // how long a stopping weir serves before it drains
  base::Duration upgrade_timeout{60'000'000};  // how long a new process may take to get ready
  base::Duration upgrade_pause{5'000'000};     // how long an upgrade may make requests wait
  bool x_ratelimit = true;                     // true: weir adds X-RateLimit-* to answers
  bool ietf_ratelimit = true;                  // true: weir adds RateLimit and RateLimit-Policy to answers
  unsigned retry_after_jitter = 0;             // percent by which Retry-After may be longer
  bool forwarded = false;                      // true: weir adds Forwarded (RFC 7239) beside X-Forwarded-*
  bool underscores_in_headers = false;         // true: weir forwards request fields whose names contain '_'
  std::uint64_t max_head = 16 << 10;           // largest size of a request's or response's head in bytes
  std::uint64_t max_body = 0;                  // largest size of a request's body in bytes; 0: no bound
  std::uint64_t max_body_memory = 64 << 20;    // bound on the memory for all bodies that rules read, in bytes
  http::ParameterBounds bounds{};              // bounds on query parameters, cookies and repeated fields
  std::uint64_t max_connections = 16'384;      // most open client connections of all workers together
  // largest number of connections of one client address; 0: no bound (proxy/connections_per_ip.hpp)
  std::uint64_t max_connections_per_ip = 0;
  // largest number of requests at upstreams; 0: no bound (proxy/in_flight.hpp)
  std::uint64_t max_in_flight = 0;
  // longest time from the first byte of a request's head to the end of the head; also for a TLS handshake
  base::Duration head_timeout{10'000'000};
  base::Duration body_timeout{30'000'000};   // longest time without a new octet of a request's body
  base::Duration write_timeout{30'000'000};  // longest time in which a client accepts no octet of an answer
  // lowest permitted rate of request bodies from clients and of answers to clients
  MinRate min_rate{500, base::Duration{20'000'000}};
  bool watch = false;  // true: reload when the configuration file, or a file that it names, has changed
  base::Duration certificate_check{10'000'000};  // time between two checks of certificate files; 0: no checks
  // the name servers to ask for the addresses of servers; empty: those of the system
  std::vector<base::Endpoint> nameservers{};
  HalfClose half_close = HalfClose::Answer;
  base::Duration idle_timeout{75'000'000};  // how long a connection may be idle between two requests
};

}  // namespace weir::proxy
