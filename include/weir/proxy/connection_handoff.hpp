// ConnectionHandoff passes open connections to the process that takes over in an upgrade. The main thread
// owns the implementation (upgrade::HandoffSender), and all workers use it.
#pragma once

#include "weir/http/proxy_header.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// Facts about a connection that the new process cannot learn from the socket.
struct ConnectionInfo {
  // addresses of client and weir; nullopt: the addresses of the socket
  std::optional<http::ConnectionEnds> ends;
  std::string certificate_subject;  // subject of the client's verified certificate; empty: no certificate
  std::string certificate{};        // the certificate as a value of Client-Cert (RFC 9440); only if `relayed`
  // True if the socket is one end of a socket pair: the old process keeps the client's socket and relays its
  // bytes.
  bool relayed = false;
  bool secure = false;  // true: the connection is relayed, and the old process terminates the client's TLS
  bool last = false;    // true: the listener is closed, so the connection closes after the next answer
};

// The result of passing one connection.
enum class HandoffResult : std::uint8_t {
  Yes,      // the new process serves the connection
  NotThis,  // this connection stays in this process; other connections may still be passed
  Gone,     // the new process accepts no more connections
};

class ConnectionHandoff {
 public:
  virtual ~ConnectionHandoff() = default;
  // Passes a copy of the descriptor of a connection that is between two requests. `listener`: the address of
  // the connection's listener (AcceptorSettings::listener). `unread`: the received bytes of the next request.
  // Any worker may call this function.
  [[nodiscard]] virtual HandoffResult take(int fd, std::string_view listener,
                                           const ConnectionInfo& connection_info,
                                           std::string_view unread) noexcept = 0;
};

}  // namespace weir::proxy
