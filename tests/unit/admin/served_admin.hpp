// A test fixture: an admin server on a free port, and a client that sends raw bytes.
#pragma once

#include "admin/pages/admission.hpp"

#include "weir/admin/server.hpp"

#include <array>
#include <memory>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace weir::admin {

// A client that sends raw bytes, with blocking calls. The client gives up after ten seconds.
class Client {
 public:
  explicit Client(std::uint16_t port) {
    socket_.connect({net::asio::ip::make_address("127.0.0.1"), port});
    const timeval patience{10, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  void say(std::string_view bytes) {
    // Ignores errors, because the server may have closed the connection already. The test checks the response
    // that the server sent before.
    net::ErrorCode ignored;
    net::asio::write(socket_, net::asio::buffer(bytes), ignored);
  }
  // Returns all bytes until the server closes the connection. Appends "(reset)" if the server resets the
  // connection, or does not close it in time.
  std::string hear_all() {
    std::string text;
    while (const auto n = hear_some(text)) {
      if (n < 0) return text + "(reset)";
    }
    return text;
  }
  // Reads until the received bytes contain `end`. Returns all received bytes.
  std::string hear_until(std::string_view end) {
    std::string text;
    while (text.find(end) == std::string::npos && hear_some(text) > 0) {
    }
    return text;
  }

 private:
  ssize_t hear_some(std::string& text) {
    std::array<char, 4096> buffer;
    const auto n = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    return n;
  }

  net::asio::io_context io_;
  net::asio::ip::tcp::socket socket_{io_};
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { sources_.counters = {&counters_}; }
  ~ServerTest() override { end(); }

  void begin(ServerOptions options = {}) {
    if (!options.address.is_unix()) options.address = {.host = "127.0.0.1", .port = 0, .unix_path = {}};
    options.fault = [this](std::string_view what) { fault_ = what; };
    auto made = Server::listen(io_, std::move(options), sources_);
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
    server_->start();
    loop_ = std::jthread([this] { io_.run(); });
  }
  // Returns server options with this maximum number of connections. The time limits are too long to pass
  // during a test.
  static ServerOptions crowded(std::size_t connections) {
    ServerOptions options;
    options.max_connections = connections;
    options.head_deadline = options.deadline = std::chrono::hours(1);
    return options;
  }
  void end() {
    if (!server_) return;
    net::asio::post(io_, [this] { server_->stop(); });
    loop_.join();  // waits until the event loop has no more work
    server_.reset();
  }
  [[nodiscard]] Client client() const { return Client(server_->bound().port); }
  [[nodiscard]] std::string ask(std::string_view bytes) const {
    Client one(server_->bound().port);
    one.say(bytes);
    return one.hear_all();
  }

  observe::Counters counters_{{}};
  Sources sources_;
  net::asio::io_context io_{1};
  std::unique_ptr<Server> server_;
  std::jthread loop_;
  std::string fault_;  // the event loop's thread writes the text; tests may read it after end()
};

inline constexpr std::string_view kHealth = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

}  // namespace weir::admin
