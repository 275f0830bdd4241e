// Listening sockets: one a worker and address (SO_REUSEPORT), all opened before anything is served.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"

#include <string>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>

namespace weir::net {

using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;
using RawEndpoint = asio::generic::stream_protocol::endpoint;

// Closes so that nothing is heard of it any more although others share the socket: epoll keeps what is not
// taken out as long as any copy of it is open.
void close_acceptor(Acceptor& acceptor) noexcept;

// A file descriptor that listens; closed when destroyed unless released. A unix socket's file goes with it
// then; once connections are accepted it is somebody else's to remove.
class ListeningSocket {
 public:
  // Binds and listens. An error names the address and what the system says. What another process listens on
  // is never shared; a unix socket's file that nobody listens on any more is replaced.
  [[nodiscard]] static base::Result<ListeningSocket> open(const base::Endpoint& address);
  // The same for a listener's address, which may be a name: one socket for each address of this host that the
  // name stands for, all with one port. Addresses that this host does not have are left out.
  [[nodiscard]] static base::Result<std::vector<ListeningSocket>> open_all(const base::Endpoint& address);
  // Another one on the same address: for TCP a socket of its own, for unix the same socket again.
  [[nodiscard]] base::Result<ListeningSocket> again() const;
  // Takes a descriptor over that another process listened on, as what is configured as `address`. An error:
  // it is no listening socket.
  [[nodiscard]] static base::Result<ListeningSocket> inherit(int fd, const base::Endpoint& address);
  // The same socket once more: who listens there is heard of by whoever accepts first.
  [[nodiscard]] base::Result<ListeningSocket> share() const;

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&& other) noexcept;
  ~ListeningSocket();

  // Where it listens, with the port that the system chose where 0 was asked.
  [[nodiscard]] const base::Endpoint& address() const noexcept { return address_; }
  // The same as the system tells it: never a name.
  [[nodiscard]] base::Endpoint bound() const;
  [[nodiscard]] int native_handle() const noexcept { return fd_; }
  [[nodiscard]] Acceptor into_acceptor(Executor executor) &&;

 private:
  ListeningSocket(int fd, base::Endpoint address) noexcept : fd_(fd), address_(std::move(address)) {}
  int fd_ = -1;
  base::Endpoint address_;
  bool owns_file_ = false;  // it has made the unix socket's file
};

// The addresses that a name stands for. Blocks for as long as the system's resolver does, which nobody can
// cancel.
[[nodiscard]] base::Result<std::vector<RawEndpoint>> resolve(const base::Endpoint& address);
// Whether there is anything to look up: a host that is neither an address nor a unix socket.
[[nodiscard]] bool is_name(const base::Endpoint& address);

// The IP address of a peer; the unspecified address for a unix socket. Its port; 0 for a unix socket.
[[nodiscard]] base::IpAddress peer_address(const RawEndpoint& peer) noexcept;
[[nodiscard]] std::uint16_t peer_port(const RawEndpoint& peer) noexcept;
// Where a connected socket ends on this side; unspecified where it cannot be told.
[[nodiscard]] RawEndpoint local_endpoint(int fd) noexcept;
// Where it leads to; unspecified where it cannot be told.
[[nodiscard]] RawEndpoint remote_endpoint(int fd) noexcept;

}  // namespace weir::net
