#include "proxy/client/client_peer.hpp"

#include <sys/socket.h>

namespace weir::proxy {

ClientPeer::ClientPeer(const net::RawEndpoint& endpoint)
    : address(net::peer_address(endpoint)), port(net::peer_port(endpoint)), text(address.to_string()) {}

const ClientPeer::Details& ClientPeer::details() const noexcept {
  static const Details none;
  return details_ ? *details_ : none;
}

ClientPeer::Details& ClientPeer::edit_details() {
  if (!details_) details_ = std::make_unique<Details>();
  return *details_;
}

void ClientPeer::believe(const http::ConnectionEnds& ends) {
  edit_details().told = ends;
  address = ends.source;
  port = ends.source_port;
  text = address.to_string();
}

std::optional<http::ConnectionEnds> ClientPeer::ends(int fd) const {
  if (details().told) return details().told;
  const auto local = net::local_endpoint(fd);
  const auto family = local.data()->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  return http::ConnectionEnds{address, net::peer_address(local), port, net::peer_port(local)};
}

}  // namespace weir::proxy
