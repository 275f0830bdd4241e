#include "cli/ask_admin.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostAnswered = std::size_t{16} << 20;  // largest size of a reply in bytes

struct AdminTimeout {};

std::runtime_error failure(const char* doing) {
  return std::runtime_error(std::string(doing) + ": " +
                            std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe
}

// Waits until poll(2) reports one of `events` for the socket. Throws AdminTimeout if `deadline` passes first.
void await(const net::OwnedDescriptor& socket, short events, Clock::time_point deadline) {
  pollfd waiting{socket.get(), events, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left));
    if (ready > 0) return;
    if (ready == 0) throw AdminTimeout();
    if (errno != EINTR) throw failure("poll");
  }
}

bool connect(net::OwnedDescriptor& socket, const sockaddr* address, socklen_t size,
             Clock::time_point deadline) {
  socket = net::OwnedDescriptor(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return false;
  if (::connect(socket.get(), address, size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  await(socket, POLLOUT, deadline);
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0) errno = error;
  return errno == 0;
}

void connect_unix(net::OwnedDescriptor& socket, const std::string& path, Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (!connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline))
    throw failure("cannot connect");
}

void connect_tcp(net::OwnedDescriptor& socket, const base::Endpoint& admin, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(admin.host.c_str(), std::to_string(admin.port).c_str(), &hints, &list);
  if (error != 0) throw std::runtime_error(std::string("cannot look up the host: ") + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const auto* entry = list; entry != nullptr; entry = entry->ai_next)
    if (connect(socket, entry->ai_addr, entry->ai_addrlen, deadline)) return;
  throw failure("cannot connect");
}

void send_all(const net::OwnedDescriptor& socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    await(socket, POLLOUT, deadline);
    const auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) throw failure("cannot send");
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Returns all bytes that the server sends until it closes the connection.
std::string read_all(const net::OwnedDescriptor& socket, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    char buffer[4096];
    await(socket, POLLIN, deadline);
    const auto got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got == 0) return text;
    if (got < 0 && errno != EINTR && errno != EAGAIN) throw failure("cannot read");
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMostAnswered) throw std::runtime_error("its response is too long");
  }
}

// Returns the request as text. Its Host field has the configured address of the listener: without a token,
// the admin listener rejects requests for other hosts.
std::string text_of(const AdminRequest& request) {
  const auto host = request.address.is_unix() ? std::string("localhost") : request.address.to_string();
  std::string text(request.method);
  text += " " + request.target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n";
  if (!request.token.empty()) text += "Authorization: Bearer " + request.token + "\r\n";
  if (!request.body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

// Parses the reply. weir closes the connection after the reply, so the body is everything after the head.
AdminReply reply_in(const std::string& text) {
  AdminReply reply;
  const auto end = text.find("\r\n\r\n");
  const bool is_http = text.starts_with("HTTP/1.") && text.size() > 12 && end != std::string::npos;
  if (!is_http || std::from_chars(text.data() + 9, text.data() + 12, reply.status).ec != std::errc())
    throw NotWeir();
  reply.body = text.substr(end + 4);
  return reply;
}

AdminReply ask_until(const AdminRequest& request, Clock::time_point deadline) {
  net::OwnedDescriptor socket;
  if (request.address.is_unix())
    connect_unix(socket, request.address.unix_path, deadline);
  else
    connect_tcp(socket, request.address, deadline);
  send_all(socket, text_of(request), deadline);
  return reply_in(read_all(socket, deadline));
}

}  // namespace

AdminReply ask_admin(const AdminRequest& request) {
  try {
    return ask_until(request, Clock::now() + request.patience);
  } catch (const AdminTimeout&) {
    throw std::runtime_error("no answer within " + std::to_string(request.patience.count()) + " seconds");
  }
}

}  // namespace weir::cli
