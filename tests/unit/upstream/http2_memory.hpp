// A connection to an HTTP/2 server without a socket. The server is the server side of weir's own codec.
#pragma once

#include "unit/net/sockets.hpp"
#include "upstream/http2_server_connection.hpp"
#include "upstream/http2_server_stream.hpp"

#include "weir/http/http2_session.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace weir::upstream {

// A stream in memory. Tests move its octets in both directions.
class MemoryStream final : public net::DuplexStream {
 public:
  explicit MemoryStream(const net::Executor& executor) : readable_(executor), writable_(executor) {}

  void deliver(std::string_view octets) {
    in_ += octets;
    readable_.notify();
  }
  void end() {
    ended_ = true;
    readable_.notify();
  }
  [[nodiscard]] std::string take() { return std::exchange(out_, {}); }

  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, net::ErrorCode& ec) override {
    ec = {};
    if (in_.empty()) ec = net::asio::error::would_block;
    if (in_.empty() && ended_) ec = net::asio::error::eof;
    const auto count = in_.copy(at, size);
    in_.erase(0, count);
    return count;
  }
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec) override {
    return net::Task<std::size_t>::ended(try_read(at, size, ec));
  }
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second,
                                      net::ErrorCode& ec) override {
    ec = {};
    out_.append(first).append(second);
    return first.size() + second.size();
  }
  [[nodiscard]] std::size_t try_rest(std::string_view first, std::string_view second,
                                     net::ErrorCode& ec) override {
    return try_write(first, second, ec);
  }
  [[nodiscard]] bool owes_write() const noexcept override { return false; }
  [[nodiscard]] net::Port::Wait wait_readable() noexcept override {
    return readable_.wait(!in_.empty() || ended_);
  }
  [[nodiscard]] net::Port::Wait wait_writable() noexcept override { return writable_.wait(true); }
  void cancel() noexcept override { readable_.cancel(); }
  void shutdown_send() noexcept override {}
  void trim() noexcept override {}

 private:
  net::Readiness readable_;
  net::Readiness writable_;
  std::string in_, out_;
  bool ended_ = false;
};

// A request as the server got it, and the response to send.
class ServedRequest final : public http::Http2StreamEvents {
 public:
  void on_field(std::string_view name, std::string_view value) override {
    fields.append(name).append("=").append(value).append("\n");
  }
  void on_head() override {}
  void on_data(std::string_view octets) override { body += octets; }
  void on_end() override { ended = true; }
  void on_end_sent() override {}
  void on_closed(http::Http2Error error) override { closed = error; }
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& last) noexcept override {
    const auto size = response.copy(at, room);
    response.erase(0, size);
    last = response.empty();
    return size;
  }
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override {
    return response_trailers.size() != 0 ? &response_trailers : nullptr;
  }

  std::string fields, body, response;
  http::Http2Fields response_trailers;
  bool ended = false;
  std::optional<http::Http2Error> closed;
};

class Http2InMemory : public ::testing::Test, private http::Http2Events {
 protected:
  ~Http2InMemory() override {
    connection->close();
    context.restart();
    context.poll();
  }

  // Lets weir connect. The server's first octets arrive with the next exchange().
  void connect() { connection->adopt(octets); }
  // Moves octets both ways, and runs weir's coroutines, until neither side has anything to do.
  void exchange() {
    std::string to_weir;
    do {
      run();
      EXPECT_TRUE(server.receive(octets.take()));
      to_weir.clear();
      server.write(to_weir, 1 << 20);
      if (!to_weir.empty()) octets.deliver(to_weir);
    } while (!to_weir.empty() || run() != 0);
  }
  std::size_t run() {
    context.restart();
    return context.poll();
  }
  void answer(std::int32_t id, unsigned status, bool has_body) {
    http::Http2Fields fields;
    fields.add_status(status);
    server.send_head(id, fields, has_body);
  }
  // Returns what can be read now. Sets `error` to the reason why no more can be read.
  std::string read(Http2ServerStream& stream, net::ErrorCode& error) {
    std::string text;
    error = {};
    while (!error) {
      std::array<char, 1000> piece;
      text.append(piece.data(), stream.try_read(piece.data(), piece.size(), error));
    }
    return text;
  }

  bool refuses = false;
  std::map<std::int32_t, ServedRequest> requests;
  net::asio::io_context context{1};
  net::Watchdog watchdog{context.get_executor()};
  MemoryStream octets{context.get_executor()};
  std::shared_ptr<Http2ServerConnection> connection = std::make_shared<Http2ServerConnection>(
      context.get_executor(), watchdog,
      Http2ServerConnection::Settings{.connect = std::chrono::seconds(5), .idle = std::chrono::seconds(5)});
  http::Http2Session server{static_cast<http::Http2Events&>(*this),
                            {.max_streams = 2, .stream_window = 1000, .connection_window = 100'000}};

 private:
  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t id) override {
    return refuses ? nullptr : &requests[id];
  }
  void on_cheap_frame(http::Http2CheapFrame) override {}
  void on_pong() override {}
  void on_failure() noexcept override {}
};

}  // namespace weir::upstream
