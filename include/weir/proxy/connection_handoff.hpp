// The way of connections to another process, where one has taken over.
#pragma once

#include "weir/http/proxy_header.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// What whoever takes a connection over does not see in its socket.
struct ConnectionInfo {
  std::optional<http::ConnectionEnds> ends;  // as the client sees them; absent: the socket's own
  std::string certificate_subject;           // verified; empty: the client showed none
  // The socket is one end of a pair: whoever sends it keeps the client, and passes on what comes of it.
  bool relayed = false;
  bool secure = false;  // likewise, and the client speaks TLS, which stays there
  bool last = false;    // its listener is gone: its next answer is the last
};

// What became of a connection that was to go over.
enum class HandoffResult : std::uint8_t {
  Yes,
  NotThis,  // it stays; others may go
  Gone,     // nobody takes any
};

class ConnectionHandoff {
 public:
  virtual ~ConnectionHandoff() = default;
  // Takes a copy of a connection that has come by `listener` (its address as configured) and is between two
  // requests, with what was read of the next. Any worker's thread.
  [[nodiscard]] virtual HandoffResult take(int fd, std::string_view listener,
                                           const ConnectionInfo& connection_info,
                                           std::string_view unread) noexcept = 0;
};

}  // namespace weir::proxy
