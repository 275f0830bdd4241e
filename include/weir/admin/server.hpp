// The admin listener: provides health, readiness, metrics and rules to operators and monitoring.
//
// Runs on the control thread's io_context, which serves no clients. Only that thread uses this object, which
// server::Program owns. All resources have small, fixed bounds (see server.cpp), so that a client of this
// port cannot use much memory or time.
//
// - GET /healthz: 200 "ok" while the process runs
// - GET /readyz: 200 or 503 with the reason
// - GET /, /web/…: the dashboard's page and its files
// - GET /api/access: says whether the request has the right token
// - GET /metrics: Prometheus text
// - GET /api/rules: each rule with its counters
// - GET /api/top: the clients that use most of each rule
// - GET /api/overview, /api/history: the dashboard's present data, and its data of the last minutes
// - POST /api/reload: reloads the configuration: 200 with the changes, or 422 with the mistakes
// - POST /api/upgrade: starts a new process that takes over: 200, or 409 with the reason
// - POST /api/explain: the decision for a described request; charges nothing
// - GET, DELETE /api/keys: shows the state of one key, or resets the key
// - GET, PUT, PATCH, DELETE /api/client-keys: lists, adds, changes or removes API keys of the keys file
// - GET, POST /api/servers: lists the servers of the upstreams, or changes one server
//
// Requests for /metrics and the pages below it in this list need `Authorization: Bearer TOKEN` if a token is
// set. If no token is set, the Host of a request must be an address (src/admin/pages/admission.hpp).
// src/admin/pages/pages.cpp has the table of pages.
//
// If a request causes an exception, weir counts and logs the exception, and the listener continues. If memory
// does not suffice even for a timer, the process ends.
#pragma once

#include "weir/admin/sources.hpp"
#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::admin {

struct ServerOptions {
  // Port 0 means any free port. A host name is looked up once, and the listener opens all its addresses.
  base::Endpoint address;
  std::string token;  // empty: requests need no token
  // Longest time from the accept of a connection to the end of its first request head.
  base::Duration head_deadline{2'000'000};
  // The time limit of each of these steps: reading a body; running a page's handler; sending a response and
  // reading the next request head.
  base::Duration deadline{10'000'000};
  std::function<void(std::string_view)> fault;  // called with a text for each internal error
  // The largest number of connections. When this number is reached, a new connection replaces the connection
  // that has made no progress for the longest time.
  std::size_t max_connections = 64;
};

class Server {
 public:
  // Binds and listens, but does not reply before start(). The error names the address and says what failed.
  // `io` must outlive the server. `inherited`: sockets that already listen at the address. Throws
  // std::runtime_error if SHA-256 is not available or epoll does not accept a socket.
  [[nodiscard]] static base::Result<std::unique_ptr<Server>> listen(
      net::asio::io_context& io, ServerOptions options, Sources sources,
      std::vector<net::ListeningSocket> inherited = {});
  // Ends running requests. REQUIRES that `io` is not running, or that the caller is on the thread that runs
  // it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  // Uses other sources for later requests. Must be called on the server's thread.
  void renew(Sources sources);
  // Stops accepting and closes every connection.
  void stop();
  // Must be called when another process serves the sockets. Stops accepting, and closes each connection after
  // its next response.
  void retire();
  // Returns true if any request still waits for its response.
  [[nodiscard]] bool is_answering() const noexcept;
  // Returns the sockets, which another process will use. The sockets are valid until stop() or retire().
  [[nodiscard]] std::vector<int> sockets() const;

  // bound() returns the listener's first address, and addresses() all of them, with the actual port.
  [[nodiscard]] const base::Endpoint& bound() const noexcept;
  [[nodiscard]] const std::vector<base::Endpoint>& addresses() const noexcept;

 private:
  struct Impl;
  // Shared with running coroutines, which end in the next turn of the event loop after their sockets were
  // closed.
  std::shared_ptr<Impl> impl_;
  explicit Server(std::shared_ptr<Impl> impl) noexcept;
};

}  // namespace weir::admin
