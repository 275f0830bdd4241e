// The address of a connection's client. The address comes from the socket, from a trusted proxy, or from
// another weir process. The session owns the object.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/net/listener.hpp"
#include "weir/policy/naming.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weir::proxy {

struct ClientPeer {
  explicit ClientPeer(const net::RawEndpoint& endpoint);
  // The client that a question names. It has no connection to weir.
  explicit ClientPeer(const base::IpAddress& client) : address(client) {}

  base::IpAddress address;
  std::uint16_t port = 0;
  std::string text{};  // the address as text; empty for the client of a question

  // Facts that most connections lack. They are allocated apart, to keep idle connections small.
  struct Details {
    // addresses of client and weir; nullopt unless a trusted proxy or another process reported them
    std::optional<http::ConnectionEnds> reported_ends;
    std::string certificate_subject;  // subject of the verified certificate; empty: no certificate
    // The verified certificate as a value of Client-Cert (RFC 9440); empty: no certificate; nullopt: no
    // request has needed it yet.
    std::optional<std::string> certificate;
  };
  [[nodiscard]] const Details& details() const noexcept;
  // Returns the details for a change. The first call allocates them.
  [[nodiscard]] Details& edit_details();

  mutable policy::AddressDigest address_digest{};  // remembers the digest of `address` (policy::Request)

  void use_reported(const http::ConnectionEnds& ends);
  // Returns the addresses of both ends of the connection as the client sees them. `fd`: the socket. Returns
  // nothing if the connection does not use IP.
  [[nodiscard]] std::optional<http::ConnectionEnds> ends(int fd) const;

 private:
  std::unique_ptr<Details> details_{};  // null: no fact is known
};

}  // namespace weir::proxy
