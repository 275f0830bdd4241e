// Tests that a lack of memory while a client connects closes only that client's connection. The admin
// listener continues.
//
// Asio allocates the frames of its coroutines with aligned_alloc(3), which this test replaces. Sanitizers
// replace aligned_alloc(3), too.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "weir/admin/server.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>

namespace {

// Makes the next allocation on this thread fail. If the event loop waits for a connection, this allocation is
// the frame of the connection's coroutine.
thread_local bool next_fails = false;

}  // namespace

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (std::exchange(next_fails, false)) return nullptr;
  return ::memalign(alignment, size);
}

namespace weir::admin {
namespace {

std::string ask(std::uint16_t port) {
  net::asio::io_context io;
  net::asio::ip::tcp::socket socket(io);
  socket.connect({net::asio::ip::make_address("127.0.0.1"), port});
  net::ErrorCode ignored;
  net::asio::write(
      socket,
      net::asio::buffer(std::string_view("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")),
      ignored);
  std::string said;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::recv(socket.native_handle(), buffer.data(), buffer.size(), 0)) > 0;)
    said.append(buffer.data(), static_cast<std::size_t>(count));
  return said;
}

TEST(ServerMemory, LackOfMemoryClosesOneConnectionAndTheNextIsServed) {
  net::asio::io_context io{1};
  ServerOptions options;
  options.address = {.host = "127.0.0.1", .port = 0, .unix_path = {}};
  std::vector<std::string> faults;
  options.fault = [&](std::string_view what) { faults.emplace_back(what); };
  auto server = std::move(*Server::listen(io, std::move(options), {}));
  server->start();
  std::jthread loop([&] { io.run(); });
  net::asio::post(io, [] { next_fails = true; });
  EXPECT_EQ(ask(server->bound().port), "");
  EXPECT_THAT(ask(server->bound().port), ::testing::StartsWith("HTTP/1.1 200"));
  net::asio::post(io, [&] { server->stop(); });
  loop.join();
  EXPECT_THAT(faults, ::testing::ElementsAre("admin: accepting failed; weir continues: std::bad_alloc"));
}

}  // namespace
}  // namespace weir::admin

#endif
