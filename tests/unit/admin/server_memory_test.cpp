// Tests that a lack of memory while a client connects closes only that client's connection. The admin
// listener continues.
//
// Builds with sanitizers have no such tests. They do not reuse the frames of coroutines, so their allocations
// come at other steps.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "unit/scarce_memory.hpp"

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
#include <sys/socket.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
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

// Makes one allocation fail while a client connects: the allocation after the next `successes` allocations.
// Returns the faults that the server reports.
std::vector<std::string> faults_without_memory(long successes) {
  net::asio::io_context io{1};
  ServerOptions options;
  options.address = {.host = "127.0.0.1", .port = 0, .unix_path = {}};
  std::vector<std::string> faults;
  options.fault = [&](std::string_view what) { faults.emplace_back(what); };
  auto server = std::move(*Server::listen(io, std::move(options), {}));
  server->start();
  std::jthread loop([&] { io.run(); });
  net::asio::post(io, [successes] {
    tests::only_one_fails = true;
    tests::allocations_left = successes;
  });
  EXPECT_EQ(ask(server->bound().port), "");
  EXPECT_THAT(ask(server->bound().port), ::testing::StartsWith("HTTP/1.1 200"));
  net::asio::post(io, [&] { server->stop(); });
  loop.join();
  return faults;
}

// Asio makes the first allocation, for the socket. The second allocation is for the coroutine of the
// connection.
TEST(ServerMemory, LackOfMemoryForAConnectionClosesItAndTheNextConnectionIsServed) {
  EXPECT_THAT(faults_without_memory(1),
              ::testing::ElementsAre("admin: accepting failed; weir continues: std::bad_alloc"));
}

TEST(ServerMemory, LackOfMemoryForARequestClosesItsConnectionAndIsLogged) {
  EXPECT_THAT(faults_without_memory(3),
              ::testing::ElementsAre("admin: answering failed; weir continues: std::bad_alloc"));
}

}  // namespace
}  // namespace weir::admin

#endif
