// One worker's HTTP/2 connections to one server. Requests share the connections. A request uses the oldest
// connection with room, so that newer connections become unused and close.
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
  // A connection. Its requests and its coroutines share the ownership.
  using Shared = std::shared_ptr<Http2ServerConnection>;

  // All references must outlive this object.
  Http2Connections(const net::Executor& executor, net::Watchdog& watchdog, const UpstreamSettings& settings,
                   ServerGroup::Member& member) noexcept
      : executor_(executor), watchdog_(watchdog), settings_(settings), member_(member) {}

  // Returns true if the server may speak HTTP/2, so that a request should first look for an HTTP/2 connection
  // here.
  [[nodiscard]] bool may_be_used() const noexcept;
  // Records which protocol the server chose on a new connection. Needed only if the protocol is Auto.
  void note_choice(bool http1) noexcept { chose_http1_ = http1; }

  // Returns a connection with room for a request, or null if there is none. `avoid`: a connection that must
  // not be returned.
  [[nodiscard]] Shared find(const void* avoid) noexcept;
  // Returns a connection with room. Starts a connection if there is none with room. `session`: the TLS
  // session to resume; may be null.
  [[nodiscard]] Shared find_or_start(const void* avoid, SSL_SESSION* session);
  // Adds an open connection on which the server chose HTTP/2. `address_changes`: the value of
  // Member::address_changes() when the connection was opened.
  [[nodiscard]] Shared adopt(std::unique_ptr<net::Stream> stream, std::uint32_t address_changes);

  // Makes connections to addresses that the server no longer has accept no further requests. `location`: the
  // server's present addresses.
  void follow(const ServerGroup::Member::Location& location) noexcept;
  // Must be called in each tick of the watchdog.
  void tick() noexcept;
  // Closes all connections.
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
