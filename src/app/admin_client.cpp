#include "app/admin_client.hpp"

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

namespace weir::app {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::size_t kMostReply = 16 << 20;  // bytes

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

std::runtime_error failure(const char* doing) {
  return std::runtime_error(std::string(doing) + ": " +
                            std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
}

// Waits until the socket is ready for `events`; throws when the deadline is first.
void await(const Descriptor& socket, short events, Clock::time_point deadline) {
  pollfd waiting{socket.get(), events, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left));
    if (ready > 0) return;
    if (ready == 0) throw std::runtime_error("no answer within 2 seconds");
    if (errno != EINTR) throw failure("poll");
  }
}

bool connect(Descriptor& socket, const sockaddr* address, socklen_t size, Clock::time_point deadline) {
  socket.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return false;
  if (::connect(socket.get(), address, size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  await(socket, POLLOUT, deadline);
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0) errno = error;
  return errno == 0;
}

void connect_unix(Descriptor& socket, const std::string& path, Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (!connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline))
    throw failure("cannot connect");
}

void connect_tcp(Descriptor& socket, const base::Endpoint& admin, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(admin.host.c_str(), std::to_string(admin.port).c_str(), &hints, &list);
  if (error != 0) throw std::runtime_error(std::string("cannot find the host: ") + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const auto* entry = list; entry != nullptr; entry = entry->ai_next)
    if (connect(socket, entry->ai_addr, entry->ai_addrlen, deadline)) return;
  throw failure("cannot connect");
}

void send_all(const Descriptor& socket, std::string_view text, Clock::time_point deadline) {
  while (!text.empty()) {
    await(socket, POLLOUT, deadline);
    const auto sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) throw failure("cannot send");
    if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Until the other side closes, which it was asked to do behind its answer.
std::string read_all(const Descriptor& socket, Clock::time_point deadline) {
  std::string all;
  char buffer[16 << 10];
  for (;;) {
    await(socket, POLLIN, deadline);
    const auto got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno != EINTR && errno != EAGAIN) throw failure("cannot read");
    if (got == 0) return all;
    if (got > 0) all.append(buffer, static_cast<std::size_t>(got));
    if (all.size() > kMostReply) throw std::runtime_error("its answer has no end");
  }
}

AdminReply parse_reply(std::string text) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const auto end = text.find("\r\n\r\n");
  AdminReply reply;
  if (!text.starts_with("HTTP/1.") || end == std::string::npos || text.size() < kVersion.size() + 3)
    throw std::runtime_error("its answer is no HTTP");
  const auto* digits = text.data() + kVersion.size();
  if (std::from_chars(digits, digits + 3, reply.status).ptr != digits + 3)
    throw std::runtime_error("its answer is no HTTP");
  reply.body = text.substr(end + 4);
  return reply;
}

}  // namespace

AdminReply ask_admin(const base::Endpoint& address, std::string_view token, std::string_view target) {
  const auto deadline = Clock::now() + kPatience;
  Descriptor socket(-1);
  if (address.is_unix())
    connect_unix(socket, address.unix_path, deadline);
  else
    connect_tcp(socket, address, deadline);
  std::string request =
      "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!token.empty()) request += "Authorization: Bearer " + std::string(token) + "\r\n";
  send_all(socket, request + "\r\n", deadline);
  return parse_reply(read_all(socket, deadline));
}

}  // namespace weir::app
