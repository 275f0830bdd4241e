// The address of a connection's client: of the socket, or as reported by a trusted proxy or by another weir
// process.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/net/listener.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::proxy {

struct ClientPeer {
  explicit ClientPeer(const net::RawEndpoint& endpoint);

  base::IpAddress address;
  std::uint16_t port = 0;
  std::string text;  // the address
  std::optional<http::ConnectionEnds>
      told;  // the ends of the connection, if a trusted proxy or another process reported them
  std::string certificate_subject{};  // of the verified certificate; empty: no certificate

  void believe(const http::ConnectionEnds& ends);
  // Returns the two ends of the connection of socket `fd` as the client sees them, or nothing if the
  // connection does not use IP.
  [[nodiscard]] std::optional<http::ConnectionEnds> ends(int fd) const;
};

}  // namespace weir::proxy
