// Bounds and deadlines of the client side, and switches for the headers that weir adds.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/parameters.hpp"
#include "weir/proxy/min_rate.hpp"

#include <cstdint>

namespace weir::proxy {

// The treatment of a request whose client half-closes its connection.
enum class HalfClose : std::uint8_t {
  Answer,  // answers it; the client has left only when the connection breaks
  End,     // ends it as if the client had left
};

struct ServerSettings {
  unsigned workers = 0;                        // 0: one per core
  base::Duration drain{30'000'000};            // how long a stopping weir waits for its requests to end
  base::Duration upgrade_timeout{60'000'000};  // until a new process is ready to take over
  base::Duration upgrade_pause{5'000'000};     // how long requests may pause during an upgrade
  bool x_ratelimit = true;                     // X-RateLimit-*
  bool ietf_ratelimit = true;                  // RateLimit, RateLimit-Policy
  bool forwarded = false;                      // adds Forwarded (RFC 7239) beside X-Forwarded-*
  bool underscores_in_headers = false;         // forwards request fields with underscores in their names
  std::uint64_t max_head = 16 << 10;           // bytes of a request's or response's head
  std::uint64_t max_body = 0;                  // bytes of a request's body; 0: no bound
  std::uint64_t max_body_memory = 64 << 20;    // bytes of all bodies that rules read, together
  http::ParameterBounds bounds{};              // on query parameters, cookies and repeated fields
  std::uint64_t max_connections = 16'384;      // open client connections of all workers together
  std::uint64_t max_connections_per_ip =
      0;                            // of each client address; 0: no bound (proxy/connections_per_ip.hpp)
  std::uint64_t max_in_flight = 0;  // requests at upstreams; 0: no bound (proxy/in_flight.hpp)
  base::Duration head_timeout{
      10'000'000};  // from a request's first byte to the end of its head; TLS handshake
  base::Duration body_timeout{30'000'000};   // between two reads of a request's body
  base::Duration write_timeout{30'000'000};  // between two writes to a client that does not read
  MinRate min_rate{500,
                   base::Duration{20'000'000}};  // of bodies that clients send and answers that they read
  base::Duration certificate_check{10'000'000};  // between two checks of certificate files; 0: no checks
  HalfClose half_close = HalfClose::Answer;
  base::Duration idle_timeout{75'000'000};  // between two requests of a connection
};

}  // namespace weir::proxy
