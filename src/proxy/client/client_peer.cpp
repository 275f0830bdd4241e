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

void ClientPeer::use_reported(const http::ConnectionEnds& ends) {
  edit_details().reported_ends = ends;
  address = ends.source;
  port = ends.source_port;
  text = address.to_string();
}

std::optional<http::ConnectionEnds> ClientPeer::ends(int fd) const {
  if (details().reported_ends) return details().reported_ends;
  const auto local = net::local_endpoint(fd);
  const auto family = local.data()->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  return http::ConnectionEnds{address, net::peer_address(local), port, net::peer_port(local)};
}

}  // namespace weir::proxy
