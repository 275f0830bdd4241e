// `weir health`: one request by blocking calls, because it is all that this process does.
#include "weir/app/run.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
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
constexpr std::size_t kStatusLine = 12;  // "HTTP/1.1 200"

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

void send_request(const Descriptor& socket, Clock::time_point deadline) {
  constexpr std::string_view kRequest = "GET /healthz HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
  await(socket, POLLOUT, deadline);
  const auto sent = ::send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kRequest.size())) throw failure("cannot send");
}

// "HTTP/1.1 200", or less where the connection ends before.
std::string read_status(const Descriptor& socket, Clock::time_point deadline) {
  std::string status;
  while (status.size() < kStatusLine) {
    char buffer[kStatusLine];
    await(socket, POLLIN, deadline);
    const auto got = ::recv(socket.get(), buffer, kStatusLine - status.size(), 0);
    if (got < 0 && errno != EINTR && errno != EAGAIN) throw failure("cannot read");
    if (got == 0) break;
    if (got > 0) status.append(buffer, static_cast<std::size_t>(got));
  }
  return status;
}

}  // namespace

int run_health(const base::Endpoint& admin) {
  try {
    const auto deadline = Clock::now() + kPatience;
    Descriptor socket(-1);
    if (admin.is_unix())
      connect_unix(socket, admin.unix_path, deadline);
    else
      connect_tcp(socket, admin, deadline);
    send_request(socket, deadline);
    const auto status = read_status(socket, deadline);
    if (status.starts_with("HTTP/1.") && status.ends_with(" 200")) return 0;
    throw std::runtime_error("it does not answer 200");
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << admin.to_string() << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::app
