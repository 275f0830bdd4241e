// The admin listener: health, readiness, metrics and rules, for operators and monitoring.
//
// Runs on the control thread's io_context, which serves no clients. Only that thread uses this object. Every
// bound is small and fixed (see server.cpp), so that nobody who reaches the port can make it expensive.
//
// - GET /healthz: 200 "ok": the process answers
// - GET /readyz: 200 or 503 with the reason
// - GET /, /web/…: the dashboard's page and its files
// - GET /api/access: whether the request has the right token
// - GET /metrics: Prometheus text
// - GET /api/rules: each rule with its counters
// - GET /api/top: the clients that use most of a rule
// - GET /api/overview, /api/history: data of the dashboard: now, and before it was opened
// - POST /api/reload: reads the configuration: 200 with the changes, or 422 with the mistakes
// - POST /api/upgrade: starts a new process that takes over: 200, or 409 with the reason
// - POST /api/explain: the decision for a described request; charges nothing
// - GET, DELETE /api/keys: the state of one key, or its reset
//
// From /metrics on, a request needs `Authorization: Bearer TOKEN` if a token is set. Without a token, the
// Host of a request must be an address (src/admin/pages/admission.hpp). src/admin/pages/pages.cpp has the
// table of pages.
//
// An exception during a request is counted and logged, and the listener continues. If there is not even
// memory to wait, the process ends.
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
  base::Endpoint address;  // port 0: any free port; a name is looked up once and opened at all its addresses
  std::string token;       // empty: no token is needed
  base::Duration head_deadline{2'000'000};  // from accepting a connection to the end of its first head
  // For each of: the reading of a body; the work of a page; the sending of a response together with the
  // reading of the next head.
  base::Duration deadline{10'000'000};
  std::function<void(std::string_view)> fault;  // called with a description of an internal fault
  // Above this number, a new connection replaces the one without progress for the longest time.
  std::size_t max_connections = 64;
};

class Server {
 public:
  // Binds and listens, but does not reply before `start`. The error says what failed for which address. `io`
  // outlives the server. `inherited`: sockets that listen already.
  [[nodiscard]] static base::Result<std::unique_ptr<Server>> listen(
      net::asio::io_context& io, ServerOptions options, Sources sources,
      std::vector<net::ListeningSocket> inherited = {});
  // REQUIRES that `io` is not running, or that this is its thread. Ends present requests.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  // Uses other sources from the next response on. Must be called on the server's thread.
  void renew(Sources sources);
  // Stops accepting and closes every connection.
  void stop();
  // Leaves the sockets to another process: stops accepting, and closes each connection after its next
  // response.
  void retire();
  // Returns true if a request waits for its response.
  [[nodiscard]] bool is_answering() const noexcept;
  // Returns the sockets for another process; valid until stop() or retire().
  [[nodiscard]] std::vector<int> sockets() const;

  // Return the addresses with the actual port: the first one, and all of them.
  [[nodiscard]] const base::Endpoint& bound() const noexcept;
  [[nodiscard]] const std::vector<base::Endpoint>& addresses() const noexcept;

 private:
  struct Impl;
  // Shared with running coroutines, which end one turn of the loop after their sockets were closed.
  std::shared_ptr<Impl> impl_;
  explicit Server(std::shared_ptr<Impl> impl) noexcept;
};

}  // namespace weir::admin
