// The admin listener: health, readiness, metrics and the rules, for operators and for what watches over weir.
//
// Lives on the control thread's io_context, which serves no client, and is touched by that thread alone.
// Every bound is small and fixed (see server.cpp), so that nobody who reaches this port can make it cost
// much.
//
//   GET /healthz                     200 "ok": the process answers
//   GET /readyz                      200 or 503 with the reason
//   GET /, /web/…                    the dashboard's page and what it is made of
//   GET /api/access                  whether the token that came with the request is the one that is asked
//   GET /metrics                     Prometheus text
//   GET /api/rules                   each rule with its counters
//   GET /api/top                     who spends most of a rule
//   GET /api/overview, /api/history  what the dashboard shows, and of the time before it was opened
//   POST /api/reload                 reads the configuration anew: 200 and what changed, or 422 and why not
//   POST /api/upgrade                a new process takes over: 200, or 409 and why not
//   POST /api/explain                what would become of a described request; nothing is charged
//   GET, DELETE /api/keys            the state of one key, and giving it back
//
// From /metrics on, where a token is set `Authorization: Bearer TOKEN` is asked for, and where none is only
// who asks by address is answered (src/admin/pages/admission.hpp). src/admin/pages/pages.cpp has the table of
// pages.
//
// What throws while it is worked on is counted and said, and the listener goes on; where there is no memory
// left even to wait, the process ends.
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
  base::Endpoint
      address;        // with port 0 any free one; a name is looked up once, and opened at all its addresses
  std::string token;  // empty: none asked
  base::Duration head_deadline{2'000'000};  // from accepting a connection to the end of its first head
  // For sending a body; for the page that is asked; for reading an answer, and from there to the end of the
  // next head.
  base::Duration deadline{10'000'000};
  std::function<void(std::string_view)> fault;  // told of what should not happen: a source that threw
  // A newcomer beyond takes the place of the one that has got nowhere for longest.
  std::size_t max_connections = 64;
};

class Server {
 public:
  // Binds and listens; an error says what could not be done to which address. Answers nothing before `start`.
  // `io` outlives the server. `inherited`: listen there already.
  [[nodiscard]] static base::Result<std::unique_ptr<Server>> listen(
      net::asio::io_context& io, ServerOptions options, Sources sources,
      std::vector<net::ListeningSocket> inherited = {});
  // REQUIRES that `io` is not running, or that this is its thread. Ends what is under way.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  // Other sources, from the next answer on. The server's thread.
  void renew(Sources sources);
  // Accepts no more and closes every connection.
  void stop();
  // Leaves the socket to another process: accepts no more, and connections end with their next answer.
  void retire();
  // Somebody has asked and has not been told yet.
  [[nodiscard]] bool is_answering() const noexcept;
  // The sockets, for that; valid until stop() or retire().
  [[nodiscard]] std::vector<int> sockets() const;

  // Where it listens, with the port it was given: the first address, and all of them.
  [[nodiscard]] const base::Endpoint& bound() const noexcept;
  [[nodiscard]] const std::vector<base::Endpoint>& places() const noexcept;

 private:
  struct Impl;
  // Shared with the coroutines under way: they end a turn of the loop after their sockets were closed.
  std::shared_ptr<Impl> impl_;
  explicit Server(std::shared_ptr<Impl> impl) noexcept;
};

}  // namespace weir::admin
