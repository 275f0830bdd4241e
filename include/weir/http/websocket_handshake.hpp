// The opening handshake of a WebSocket (RFC 6455 §4). If a client of HTTP/2 opens a WebSocket, it sends an
// extended CONNECT (RFC 8441), and weir does this handshake with the server.
#pragma once

#include "weir/http/head.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

// Returns the value of Sec-WebSocket-Key. `chance`: random octets.
[[nodiscard]] std::string websocket_key(const std::array<std::uint8_t, 16>& chance);

// Returns the value of Sec-WebSocket-Accept that confirms `key`.
[[nodiscard]] std::string websocket_accept(std::string_view key);

// Returns why weir must not forward a server's final response or 101 to a client of HTTP/2 that opens a
// WebSocket. To that client, each 2xx would mean that the WebSocket is open. Returns null if weir may forward
// the response, or if the request does not open a WebSocket. The text is static.
[[nodiscard]] const char* websocket_fault(const RequestHead& request, const ResponseHead& response);

}  // namespace weir::http
