// One worker's HTTP/2 connections to one server. Requests share them, the oldest first, so that the others
// become unused and end.
#pragma once

#include "upstream/http2_server_connection.hpp"

#include "weir/net/stream.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/server_group.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::upstream {

class Http2Connections {
 public:
  using Shared = std::shared_ptr<Http2ServerConnection>;  // its requests and its coroutines hold it, too

  // All references must outlive this object.
  Http2Connections(const net::Executor& executor, net::Watchdog& watchdog, const UpstreamSettings& settings,
                   ServerGroup::Member& member) noexcept
      : executor_(executor), watchdog_(watchdog), settings_(settings), member_(member) {}

  // Returns true if a request should ask for a connection here first.
  [[nodiscard]] bool may_be_used() const noexcept;
  // Records what the server chose on a connection, if the protocol is Auto.
  void note_choice(bool http1) noexcept { chose_http1_ = http1; }

  // Returns a connection with room for a request; null: there is none. `avoid`: a connection that must not be
  // returned.
  [[nodiscard]] Shared find(const void* avoid) noexcept;
  // Returns a connection with room; starts one if there is none. `session`: the TLS session to resume; may be
  // null.
  [[nodiscard]] Shared find_or_start(const void* avoid, SSL_SESSION* session);
  // Adds a connection that is open already, and on which the server chose HTTP/2. `moves`: the number of
  // address changes when it was opened.
  [[nodiscard]] Shared adopt(std::unique_ptr<net::Stream> stream, std::uint32_t moves);

  // Lets the connections to addresses that the server no longer has serve no further requests.
  void follow(const ServerGroup::Member::Location& location) noexcept;
  // Must be called in each tick of the watchdog.
  void tick() noexcept;
  // Ends all connections.
  void close() noexcept;

 private:
  [[nodiscard]] Shared add();

  net::Executor executor_;
  net::Watchdog& watchdog_;
  const UpstreamSettings& settings_;
  ServerGroup::Member& member_;
  std::vector<Shared> all_;
  bool chose_http1_ = false;  // the server chose HTTP/1.1 on the last connection
};

}  // namespace weir::upstream
