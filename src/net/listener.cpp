#include "weir/net/listener.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::net {

namespace {

constexpr int kBacklog = 4096;

// Returns what the user can do about a system error for this address, as the end of an error message.
const char* advice_for(int error, const base::Endpoint& address) noexcept {
  constexpr std::uint16_t kFirstFree = 1024;
  if (error == EADDRNOTAVAIL)
    return "; no interface of this machine has that address; write another one, or 0.0.0.0";
  if (error == EACCES && !address.is_unix() && address.port < kFirstFree)
    return "; a port below 1024 requires root or CAP_NET_BIND_SERVICE";
  return "";
}

base::Error system_error(const base::Endpoint& address, const char* what) {
  const int error = errno;
  return base::Error{"cannot " + std::string(what) + " " + address.to_string() + ": " + std::strerror(error) +
                     advice_for(error, address)};
}

void set(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

// Makes the address [::] accept IPv4 connections too, whatever the host's bindv6only setting is.
void take_ipv4_too(int fd) {
  const int off = 0;
  ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
}

// Removes the file that an earlier process left for a unix socket, because bind() would fail. Keeps the file
// if a process listens on the socket, or if the file is no socket. bind() then reports that the address is in
// use.
void remove_stale(const std::string& path, const RawEndpoint& endpoint) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return;
  const int reached = ::connect(probe, endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  if (reached != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
}

std::uint16_t bound_port(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

base::Result<std::vector<RawEndpoint>> resolve(const base::Endpoint& address) {
  if (address.is_unix())
    return std::vector<RawEndpoint>{asio::local::stream_protocol::endpoint(address.unix_path)};
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  ErrorCode ec;
  const auto found = resolver.resolve(address.host, std::to_string(address.port), ec);
  if (ec) return base::Error{"cannot resolve \"" + address.host + "\": " + ec.message()};
  std::vector<RawEndpoint> endpoints;
  for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
  return endpoints;
}

bool is_name(const base::Endpoint& address) {
  ErrorCode ec;
  (void)asio::ip::make_address(address.host, ec);
  return !address.is_unix() && ec.failed();
}

base::Result<ListeningSocket> ListeningSocket::open(const base::Endpoint& address) {
  const auto endpoints = resolve(address);
  if (!endpoints) return endpoints.error();
  const auto& endpoint = endpoints->front();
  const int family = endpoint.protocol().family();
  ListeningSocket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), address);
  if (socket.fd_ < 0) return system_error(address, "open a socket for");
  if (family == AF_UNIX) {
    remove_stale(address.unix_path, endpoint);
  } else {
    set(socket.fd_, SOL_SOCKET, SO_REUSEADDR);
    set(socket.fd_, IPPROTO_TCP, TCP_NODELAY);  // accepted sockets inherit this option
    if (family == AF_INET6) take_ipv4_too(socket.fd_);
  }
  // With SO_REUSEPORT, a second weir process could share the port unnoticed. So the first socket binds and
  // listens without that option (Linux checks for conflicts at both calls).
  if (::bind(socket.fd_, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0)
    return system_error(address, "listen on");
  socket.owns_file_ = family == AF_UNIX;
  if (::listen(socket.fd_, kBacklog) != 0) return system_error(address, "listen on");
  if (family == AF_UNIX) return socket;
  // From now on, SO_REUSEPORT allows weir to open further sockets on the port. The kernel requires that all
  // these sockets belong to the same user.
  set(socket.fd_, SOL_SOCKET, SO_REUSEPORT);
  socket.address_.port = bound_port(socket.fd_);
  return socket;
}

namespace {

// Returns true if this host has the address, that is, if bind(2) accepts it.
bool is_here(RawEndpoint endpoint) {
  const int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno != EAFNOSUPPORT;
  auto* raw = endpoint.data();
  if (raw->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(raw)->sin_port = 0;
  if (raw->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(raw)->sin6_port = 0;
  const bool absent = ::bind(fd, raw, static_cast<socklen_t>(endpoint.size())) != 0 && errno == EADDRNOTAVAIL;
  ::close(fd);
  return !absent;
}

}  // namespace

base::Result<std::vector<ListeningSocket>> ListeningSocket::open_all(const base::Endpoint& address) {
  std::vector<ListeningSocket> sockets;
  std::vector<base::Endpoint> wanted;
  if (is_name(address)) {
    const auto found = resolve(address);
    if (!found) return found.error();
    for (const auto& each : *found) {
      const base::Endpoint one{peer_address(each).to_string(), address.port, {}};
      if (is_here(each) && std::find(wanted.begin(), wanted.end(), one) == wanted.end())
        wanted.push_back(one);
    }
    if (wanted.empty())
      return base::Error{"cannot listen on " + address.to_string() +
                         ": this host has none of the addresses of that name"};
  } else {
    wanted.push_back(address);
  }
  for (auto& one : wanted) {
    if (one.port == 0 && !sockets.empty()) one.port = sockets.front().address().port;
    auto socket = open(one);
    if (!socket) return socket.error();
    sockets.push_back(std::move(*socket));
  }
  return sockets;
}

base::Endpoint ListeningSocket::bound() const {
  if (address_.is_unix()) return address_;
  const auto local = local_endpoint(fd_);
  return {peer_address(local).to_string(), peer_port(local), {}};
}

base::Result<ListeningSocket> ListeningSocket::again() const {
  if (address_.is_unix()) return share();
  const auto endpoints = resolve(address_);
  if (!endpoints) return endpoints.error();
  const auto& endpoint = endpoints->front();
  ListeningSocket socket(
      ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), address_);
  if (socket.fd_ < 0) return system_error(address_, "open a socket for");
  set(socket.fd_, SOL_SOCKET, SO_REUSEADDR);
  set(socket.fd_, SOL_SOCKET, SO_REUSEPORT);
  set(socket.fd_, IPPROTO_TCP, TCP_NODELAY);
  if (endpoint.protocol().family() == AF_INET6) take_ipv4_too(socket.fd_);
  if (::bind(socket.fd_, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      ::listen(socket.fd_, kBacklog) != 0)
    return system_error(address_, "listen on");
  return socket;
}

base::Result<ListeningSocket> ListeningSocket::share() const {
  ListeningSocket copy(::fcntl(fd_, F_DUPFD_CLOEXEC, 0), address_);
  if (copy.fd_ < 0) return system_error(address_, "share");
  return copy;
}

base::Result<ListeningSocket> ListeningSocket::inherit(int fd, const base::Endpoint& address) {
  ListeningSocket socket(fd, address);
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    return base::Error{"the inherited descriptor for " + address.to_string() + " is not a listening socket"};
  if (!address.is_unix()) socket.address_.port = bound_port(fd);
  return socket;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      owns_file_(std::exchange(other.owns_file_, false)) {}

ListeningSocket& ListeningSocket::operator=(ListeningSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(owns_file_, other.owns_file_);
  return *this;
}

ListeningSocket::~ListeningSocket() {
  if (owns_file_) ::unlink(address_.unix_path.c_str());
  if (fd_ >= 0) ::close(fd_);
}

AcceptorSocket ListeningSocket::into_acceptor(Executor executor) && {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
  const asio::generic::stream_protocol protocol(bound.ss_family,
                                                bound.ss_family == AF_UNIX ? 0 : IPPROTO_TCP);
  AcceptorSocket acceptor(executor);
  acceptor.assign(protocol, fd_);  // if assign() throws, this object still owns the descriptor and the file
  fd_ = -1;
  owns_file_ = false;
  return acceptor;
}

void close_acceptor(AcceptorSocket& acceptor) noexcept {
  if (!acceptor.is_open()) return;
  ErrorCode ec;
  const int fd = acceptor.release(ec);  // release() removes the socket from epoll
  if (!ec) ::close(fd);
}

void defer_accept(AcceptorSocket& acceptor, bool on) noexcept {
  const int seconds = on ? 1 : 0;
  ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

OwnedDescriptor accept_connection(AcceptorSocket& acceptor, RawEndpoint& peer, ErrorCode& ec) noexcept {
  auto size = static_cast<socklen_t>(peer.capacity());
  OwnedDescriptor connection(
      ::accept4(acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection.get() >= 0) {
    ec.clear();
    peer.resize(std::min<std::size_t>(size, peer.capacity()));
    return connection;
  }
  const bool nobody = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
  ec = nobody ? ErrorCode(asio::error::would_block) : ErrorCode(errno, boost::system::system_category());
  return connection;
}

base::IpAddress peer_address(const RawEndpoint& peer) noexcept {
  const auto* address = peer.data();
  if (address->sa_family == AF_INET)
    return base::IpAddress::v4(ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr));
  if (address->sa_family != AF_INET6) return {};
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, bytes.size());
  return base::IpAddress(bytes);
}

std::uint16_t peer_port(const RawEndpoint& peer) noexcept {
  const auto* address = peer.data();
  if (address->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  if (address->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  return 0;
}

RawEndpoint local_endpoint(int fd) noexcept {
  RawEndpoint local;
  auto size = static_cast<socklen_t>(local.capacity());
  if (::getsockname(fd, local.data(), &size) == 0) local.resize(size);
  return local;
}

RawEndpoint remote_endpoint(int fd) noexcept {
  RawEndpoint remote;
  auto size = static_cast<socklen_t>(remote.capacity());
  if (::getpeername(fd, remote.data(), &size) == 0) remote.resize(size);
  return remote;
}

}  // namespace weir::net
