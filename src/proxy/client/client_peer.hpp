// Who is at the other end of a client's connection, by its socket, or by what a trusted proxy or another
// process said of it.
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
      told;                           // the two ends of the connection, if somebody said which they are
  std::string certificate_subject{};  // verified; empty: the client showed no certificate

  void believe(const http::ConnectionEnds& ends);
  // Returns the two ends of the connection of socket `fd` as the client sees them, or nothing if it is none
  // over IP.
  [[nodiscard]] std::optional<http::ConnectionEnds> ends(int fd) const;
};

}  // namespace weir::proxy
