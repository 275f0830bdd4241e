// Opens listening sockets. Each worker has a socket of its own for each address (SO_REUSEPORT). weir opens
// all sockets before it serves requests.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <string>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>

namespace weir::net {

using AcceptorSocket = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;
using RawEndpoint = asio::generic::stream_protocol::endpoint;

// Closes an acceptor and removes its socket from epoll. close(2) alone does not remove the socket while
// another process has a copy of the descriptor.
void close_acceptor(AcceptorSocket& acceptor) noexcept;

// Makes the kernel hold a connection back until the client's first bytes have arrived, or for about a second
// (TCP_DEFER_ACCEPT). So the worker wakes once for both. Has no effect on a unix socket.
void defer_accept(AcceptorSocket& acceptor, bool on) noexcept;

// Accepts the next waiting connection, and stores its address in `peer`. The connection's descriptor is
// non-blocking and is not inherited by child processes. Returns an error instead of waiting; would_block: no
// connection waits, or the client of the next connection has already left.
[[nodiscard]] OwnedDescriptor accept_connection(AcceptorSocket& acceptor, RawEndpoint& peer,
                                                ErrorCode& ec) noexcept;

// A listening file descriptor. Belongs to the main thread until into_acceptor() makes the acceptor of a
// worker. The destructor closes the descriptor and removes the file of a unix socket. After into_acceptor(),
// the destructor does nothing, and the caller must close the socket and remove the file.
class ListeningSocket {
 public:
  // Binds and listens. An error names the address and the system's reason. Fails if another process uses the
  // address. Replaces the file of a unix socket on which no process listens.
  [[nodiscard]] static base::Result<ListeningSocket> open(const base::Endpoint& address);
  // Opens a listener's address, which may be a name: one socket for each of the name's addresses, all with
  // one port. Skips addresses that this host does not have.
  [[nodiscard]] static base::Result<std::vector<ListeningSocket>> open_all(const base::Endpoint& address);
  // Opens another socket on the same address, for another worker. For TCP, the result is a separate socket;
  // for unix, another descriptor of the same socket.
  [[nodiscard]] base::Result<ListeningSocket> again() const;
  // Takes ownership of a descriptor that another process has opened and listened on. `address`: the
  // configured address. Returns an error if the descriptor is no listening socket.
  [[nodiscard]] static base::Result<ListeningSocket> inherit(int fd, const base::Endpoint& address);
  // Returns another descriptor of the same socket. The first accept(2) call on any of these descriptors gets
  // the next connection.
  [[nodiscard]] base::Result<ListeningSocket> share() const;

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&& other) noexcept;
  ~ListeningSocket();

  // Returns the address, with the port that the system chose if the configured port was 0.
  [[nodiscard]] const base::Endpoint& address() const noexcept { return address_; }
  // Returns the address that the system reports for the socket; never a host name.
  [[nodiscard]] base::Endpoint bound() const;
  [[nodiscard]] int native_handle() const noexcept { return fd_; }
  // Makes an acceptor of the descriptor. Throws boost::system::system_error if epoll does not accept the
  // socket.
  [[nodiscard]] AcceptorSocket into_acceptor(Executor executor) &&;

 private:
  ListeningSocket(int fd, base::Endpoint address) noexcept : fd_(fd), address_(std::move(address)) {}
  int fd_ = -1;
  base::Endpoint address_;
  bool owns_file_ = false;  // true: this object has created the unix socket's file and must remove it
};

// Resolves a host name, an IP address or the path of a unix socket to its addresses. For a host name, blocks
// until the system's resolver answers; this cannot be cancelled.
[[nodiscard]] base::Result<std::vector<RawEndpoint>> resolve(const base::Endpoint& address);
// Returns true if the host is a host name, not an IP address or a unix socket.
[[nodiscard]] bool is_name(const base::Endpoint& address);

// peer_address() returns a peer's IP address, and peer_port() its port. For a unix socket they return the
// unspecified address and port 0.
[[nodiscard]] base::IpAddress peer_address(const RawEndpoint& peer) noexcept;
[[nodiscard]] std::uint16_t peer_port(const RawEndpoint& peer) noexcept;
// Returns the local address of a connected socket; unspecified if it is unknown.
[[nodiscard]] RawEndpoint local_endpoint(int fd) noexcept;
// Returns the peer's address of a connected socket; unspecified if it is unknown.
[[nodiscard]] RawEndpoint remote_endpoint(int fd) noexcept;

}  // namespace weir::net
