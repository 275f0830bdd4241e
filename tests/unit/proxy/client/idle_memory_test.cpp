// Measures the memory that weir allocates for an idle connection.
#include "unit/net/ticks.hpp"
#include "unit/proxy/serving_fixture.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace weir::proxy {
namespace {

class IdleMemoryTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kClients = 200;
  static constexpr std::size_t kMostBytes = 1024;  // for each connection, with malloc's overhead
  static constexpr int kQuietTicks = 25;           // an idle connection becomes quiet after 20 ticks
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kOtherMalloc = true;
#else
  static constexpr bool kOtherMalloc = false;
#endif

  void SetUp() override {
    if (kOtherMalloc) GTEST_SKIP() << "mallinfo2() does not count the allocations of a sanitizer";
    fixture_.worker.watchdog.start();
  }
  void TearDown() override {
    fixture_.worker.watchdog.stop();
  }

  // Connects clients that send a request, read the answer and stay. Waits until their connections are quiet.
  // Returns the number of allocated bytes.
  std::size_t connect_clients() {
    for (std::size_t i = 0; i < kClients; ++i) clients_.push_back(connect_client());
    fixture_.context.restart();
    for (const int until = ticks_.seen + kQuietTicks; ticks_.seen < until;) fixture_.context.run_one();
    return ::mallinfo2().uordblks;
  }

  ServingFixture fixture_;
  net::Ticks ticks_{fixture_.worker.watchdog};
  std::vector<net::OwnedDescriptor> clients_;

 private:
  // Uses no socket of Asio, because Asio would allocate memory for the client.
  net::OwnedDescriptor connect_client() {
    net::OwnedDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(fixture_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(client.get(), at, sizeof address), 0);
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    EXPECT_EQ(::send(client.get(), kRequest.data(), kRequest.size(), 0), std::ssize(kRequest));
    char answer[4096];
    ssize_t size = -1;
    while (size < 0) {
      fixture_.turn();
      size = ::recv(client.get(), answer, sizeof answer, MSG_DONTWAIT);
    }
    EXPECT_TRUE(std::string_view(answer, static_cast<std::size_t>(size)).starts_with("HTTP/1.1 200"));
    return client;
  }
};

// The second wave of clients uses the coroutine frames that the first wave has freed.
TEST_F(IdleMemoryTest, QuietConnectionTakesLessThanOneKibibyte) {
  clients_.reserve(2 * kClients);
  const auto before = connect_clients();
  const auto after = connect_clients();
  ASSERT_EQ(fixture_.worker.sessions, 2 * kClients) << "the early client of the fixture has left";
  const auto each = (after - before) / kClients;
  RecordProperty("bytes", static_cast<int>(each));
  EXPECT_GT(each, sizeof(void*)) << "malloc counts no bytes";
  EXPECT_LT(each, kMostBytes);
}

TEST(IdleConnection, ReturnsItsReceiveBufferAtOnce) {
  ServingFixture fixture;
  auto clients = fixture.fill(5);
  EXPECT_EQ(fixture.worker.blocks.kept(), 1U) << "the connections did not use the same block in turn";
  const std::string half = "GET / HTTP/1.1\r\n";
  net::asio::write(clients.front(), net::asio::buffer(half));
  fixture.turn();
  EXPECT_EQ(fixture.worker.blocks.kept(), 0U) << "a head that has arrived in part keeps its block";
  EXPECT_EQ(fixture.ask(clients.back()).substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(fixture.worker.blocks.kept(), 1U) << "the other connection used the block of the head";
}

}  // namespace
}  // namespace weir::proxy
