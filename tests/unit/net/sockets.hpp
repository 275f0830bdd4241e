// Connected sockets, and a function that runs coroutines until they complete.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/reactor.hpp"
#include "weir/net/stream.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::net {

// A file descriptor owned by a test.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  [[nodiscard]] int number() const noexcept { return fd_; }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pair {
  int ours;           // a Stream takes ownership of this descriptor
  Descriptor theirs;  // the peer's descriptor, in blocking mode
};

inline Pair socket_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    throw std::runtime_error("socketpair");
  return {fds[0], Descriptor(fds[1])};
}

// Runs the event loop until `done` returns true. Fails the test after a time limit instead of hanging.
template <class Done>
bool turn_until(asio::io_context& context, Done done,
                std::chrono::seconds patience = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + patience;
  context.restart();
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    if (context.run_one_for(std::chrono::milliseconds(100)) == 0) context.restart();
  }
  return true;
}

// Runs a task on an event loop until it completes. Returns the task's result.
template <class T>
class Running {
 public:
  Running(asio::io_context& context, Task<T> work) : context_(context) {
    spawn(context.get_executor(), keep(std::move(work)), [this](const std::exception_ptr& failed) {
      failed_ = failed;
      done_ = true;
    });
  }
  [[nodiscard]] bool done() const noexcept { return done_; }
  T result() {
    if (!turn_until(context_, [this] { return done(); })) throw std::runtime_error("the task did not end");
    if (failed_) std::rethrow_exception(failed_);
    return *value_;
  }

 private:
  Task<void> keep(Task<T> work) { value_ = co_await work; }

  asio::io_context& context_;
  std::exception_ptr failed_;
  std::optional<T> value_;
  bool done_ = false;
};

template <class T>
T run(asio::io_context& context, Task<T> work) {
  return Running<T>(context, std::move(work)).result();
}

inline Task<ErrorCode> until_readable(Stream& stream) {
  co_return co_await stream.wait_readable();
}

// Sends all bytes. Blocks, so it must be called for a blocking descriptor.
inline void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Receives until `most` bytes have arrived or the peer has closed the connection.
inline std::string receive(int fd, std::size_t most = ~std::size_t{0}) {
  std::string got;
  std::array<char, 64 << 10> piece{};
  while (got.size() < most) {
    const auto count = ::recv(fd, piece.data(), std::min(piece.size(), most - got.size()), 0);
    if (count <= 0) break;
    got.append(piece.data(), static_cast<std::size_t>(count));
  }
  return got;
}

}  // namespace weir::net
